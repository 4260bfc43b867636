"""Managed instance groups of Google Cloud: the documented HTTP, with answers that are spoiled on their way."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cluster.load import load_cluster
from cluster.spec import Cluster
from scheduling.autoscaler.clouds.gcp.groups import GcpGroups
from scheduling.autoscaler.clouds.http import Http
from scheduling.autoscaler.groups import GroupError
from stacks.gcp.tags import labels, of_cluster
from tests.scheduling.clouds.door import Asked, Door, Told, once, served, told
from tests.scheduling.clouds.fakes import TOKEN, Google

ROOT = Path(__file__).resolve().parents[3]
ZONES = tuple(f"us-central1-{letter}" for letter in "abc")


@pytest.fixture(scope="module")
def gibbon() -> Cluster:
    return load_cluster(ROOT / "docs/examples/gcp-small.yaml")


@pytest.fixture
def google(gibbon: Cluster) -> Google:
    """With the groups of the cluster's pool, as the stack makes them, of two machines in all."""
    made = Google(region="us-central1")
    for zone, size in zip(ZONES, (1, 1, 0), strict=True):
        made.add(zone, f"gibbon-cpu-{zone}", worker(gibbon, "cpu"), size)
    return made


def worker(cluster: Cluster, pool: str) -> dict[str, str]:
    """Of a template: what the program gives it, and what its provider adds to everything."""
    return of_cluster(cluster) | labels("worker") | {"pool": pool}


@pytest.fixture
def door(google: Google) -> Iterator[Door]:
    with served(Door(google.answer)) as made:
        yield made


def groups(cluster: Cluster, door: Door, nodes: Mapping[str, str] | None = None, **more: Any) -> GcpGroups:
    environment = {
        "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
        "GOOGLE_PROJECT": "a-project",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{door.url}/compute/v1/",
    }
    return GcpGroups(cluster, Http(pause=lambda _: None), lambda: nodes or {}, environment, **more)


def sizes(google: Google) -> list[int]:
    return [group.target for _, group in sorted(google.groups.items())]


def is_change(asked: Asked) -> bool:
    return "/resize?" in asked.path or "/deleteInstances?" in asked.path


def test_a_pools_groups_of_all_zones_are_read_as_one(gibbon: Cluster, door: Door) -> None:
    at = "us-central1-a/gibbon-cpu-us-central1-a-0001"
    group = groups(gibbon, door, {f"gce://a-project/{at}": "gibbon-cpu-us-central1-a-0001"}).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (2, 2, 12, "")
    assert [(each.id, each.zone, each.state) for each in group.machines] == [
        (at, "us-central1-a", "running"),
        ("us-central1-b/gibbon-cpu-us-central1-b-0002", "us-central1-b", "running"),
    ]
    assert [each.node for each in group.machines] == ["gibbon-cpu-us-central1-a-0001", ""]


@pytest.mark.parametrize(
    ("told_of", "state"),
    [
        ({"currentAction": "CREATING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "STAGING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "REFRESHING", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "DELETING", "instanceStatus": "RUNNING"}, "leaving"),
        ({"currentAction": "NONE", "instanceStatus": "STOPPING"}, "leaving"),
    ],
)
def test_what_google_does_with_a_machine_is_its_state(
    gibbon: Cluster, door: Door, told_of: dict[str, str], state: str
) -> None:
    page = told(200, {"managedInstances": [{"name": "x", "instance": "https://x/zones/z/instances/x", **told_of}]})
    door.faults = [once(lambda asked: page if "listManagedInstances" in asked.path else None)]
    assert groups(gibbon, door).read()["cpu"].machines[0].state == state


def test_the_zones_with_fewest_machines_grow_and_none_shrinks(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon, door)
    for size in (6, 6, 3):
        seen.grow("cpu", size)
    assert sizes(google) == [2, 2, 2]
    assert len([asked for asked in door.log if is_change(asked)]) == 3


def test_a_zone_without_capacity_is_told_and_grows_last(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-a"
    text = "The zone 'us-central1-a' does not have enough resources available to fulfill the request."
    google.groups["us-central1-a", name].errors[f"{name}-0001"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", text)
    seen = groups(gibbon, door)
    group = seen.read()["cpu"]
    assert group.trouble == f"us-central1-a: ZONE_RESOURCE_POOL_EXHAUSTED: {text}"
    assert group.machines[0].state == "booting"
    seen.grow("cpu", 7)
    assert sizes(google) == [1, 3, 3]


def test_a_quota_that_is_used_up_is_told(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-b"
    google.groups["us-central1-b", name].errors[f"{name}-0002"] = ("QUOTA_EXCEEDED", "Quota 'C3_CPUS' exceeded.")
    assert groups(gibbon, door).read()["cpu"].trouble == "us-central1-b: QUOTA_EXCEEDED: Quota 'C3_CPUS' exceeded."


def test_a_pool_never_grows_above_its_most(gibbon: Cluster, google: Google, door: Door) -> None:
    with pytest.raises(GroupError, match="13 machines are more than its 12; raise pools.cpu.max"):
        groups(gibbon, door).grow("cpu", 13)
    assert sizes(google) == [1, 1, 0]


def test_named_machines_go_wherever_they_stand_and_no_others(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon, door)
    seen.grow("cpu", 9)
    ids = [each.id for each in seen.read()["cpu"].machines]
    going = [ids[0], ids[1], ids[4]]
    for _ in range(2):
        seen.remove("cpu", going)
    assert sizes(google) == [1, 2, 3]
    assert [each.id for each in seen.read()["cpu"].machines] == [id_ for id_ in ids if id_ not in going]


def test_no_fewer_are_left_than_the_spec_keeps(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon, door)
    with pytest.raises(GroupError, match="1 machines would be left, and it keeps 2"):
        seen.remove("cpu", [seen.read()["cpu"].machines[0].id])
    assert sizes(google) == [1, 1, 0]


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    gibbon: Cluster, google: Google, door: Door, fault: str
) -> None:
    seen = groups(gibbon, door)
    door.faults = [once(lambda asked: fault if "/resize?" in asked.path else None)]
    seen.grow("cpu", 5)
    assert sum(sizes(google)) == 5
    door.faults = [once(lambda asked: fault if "/deleteInstances?" in asked.path else None)]
    seen.remove("cpu", [seen.read()["cpu"].machines[0].id])
    assert sum(sizes(google)) == 4


def test_groups_without_the_clusters_labels_are_neither_seen_nor_touched(
    gibbon: Cluster, google: Google, door: Door
) -> None:
    ours = worker(gibbon, "cpu")
    google.add(ZONES[0], "gibbon-cpu-us-central1-aa", ours | {"cluster": "gibbons"}, 3)
    google.add(ZONES[0], "gibbon-api", ours | {"role": "api-server"}, 3)
    google.add(ZONES[0], "nobody", {}, 3)
    strangers = [f"{ZONES[0]}/{name}" for group in google.groups.values() for name in group.members]
    seen = groups(gibbon, door)
    own = {each.id for each in seen.read()["cpu"].machines}
    seen.remove("cpu", [name for name in strangers if name not in own])
    seen.grow("cpu", 12)
    assert {name: group.target for (_, name), group in google.groups.items() if group.target == 3}.keys() == {
        "gibbon-cpu-us-central1-aa",
        "gibbon-api",
        "nobody",
    }


def test_all_pages_are_read(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon, door, page=1)
    seen.grow("cpu", 7)
    assert len(seen.read()["cpu"].machines) == 7


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?", "listManagedInstances"])
@pytest.mark.parametrize(
    "page",
    [
        told(200, {"items": [], "managedInstances": [], "warning": {"code": "UNREACHABLE"}}),
        told(200, {"items": [], "unreachables": ["zones/us-central1-b"]}),
        told(403, {"error": {"code": 403, "message": "Required permission", "errors": [{"reason": "forbidden"}]}}),
    ],
)
def test_without_a_part_nothing_is_believed(gibbon: Cluster, door: Door, spoiled: str, page: Told) -> None:
    door.faults = [lambda asked: page if spoiled in asked.path else None]
    with pytest.raises(GroupError, match="none is believed|docs/gcp-role-autoscaler.yaml"):
        groups(gibbon, door).read()


def test_a_zone_without_its_group_is_told(gibbon: Cluster, google: Google, door: Door) -> None:
    del google.groups["us-central1-b", "gibbon-cpu-us-central1-b"]
    with pytest.raises(GroupError, match="pool cpu in us-central1-b has no group in the cloud"):
        groups(gibbon, door).read()


def test_who_is_told_to_slow_down_asks_again(gibbon: Cluster, google: Google, door: Door) -> None:
    door.faults = [once(lambda asked: told(429, {}) if is_change(asked) else None), once(lambda _: told(503, {}))]
    groups(gibbon, door).grow("cpu", 3)
    assert sum(sizes(google)) == 3


def test_without_credentials_it_is_said_how_to_get_some(gibbon: Cluster) -> None:
    environment = {"GCE_METADATA_HOST": "127.0.0.1:9", "HOME": "/nowhere", "PATH": "/nowhere", "GOOGLE_PROJECT": "p"}
    with pytest.raises(GroupError, match="no credentials for Google Cloud: .*gcloud auth application-default login"):
        GcpGroups(gibbon, Http(), dict, environment).read()


def test_a_service_accounts_key_signs_for_a_token(gibbon: Cluster, google: Google, door: Door, tmp_path: Path) -> None:
    private = rsa.generate_private_key(65537, 2048)
    kept = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = {
        "type": "service_account",
        "project_id": "a-project",
        "client_email": "autoscaler@a-project.iam.gserviceaccount.com",
        "private_key": kept.decode(),
        "token_uri": f"{door.url}/token",
    }
    file = tmp_path / "key.json"
    file.write_text(json.dumps(key))
    claims: list[dict[str, Any]] = []

    def token(asked: Asked) -> Told | None:
        if asked.path != "/token":
            return None
        text = dict(urllib.parse.parse_qsl(asked.body.decode()))["assertion"]
        head, _, proof = text.rpartition(".")
        private.public_key().verify(
            base64.urlsafe_b64decode(proof + "=="), head.encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        claims.append(json.loads(base64.urlsafe_b64decode(head.split(".")[1] + "==")))
        return told(200, {"access_token": TOKEN, "expires_in": 3599})

    door.faults = [token]
    environment = {
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{door.url}/compute/v1/",
    }
    assert GcpGroups(gibbon, Http(), dict, environment).read()["cpu"].size == 2
    (claim,) = claims
    assert (claim["iss"], claim["aud"]) == (key["client_email"], key["token_uri"])


def test_a_machine_of_google_has_its_own(gibbon: Cluster, door: Door) -> None:
    def metadata(asked: Asked) -> Told | None:
        if not asked.path.startswith("/computeMetadata/v1/"):
            return None
        assert asked.headers["Metadata-Flavor"] == "Google"
        if asked.path.endswith("/token"):
            return told(200, {"access_token": TOKEN, "expires_in": 3599})
        return Told(200, "a-project")

    door.faults = [metadata]
    environment = {
        "GCE_METADATA_HOST": door.url.removeprefix("http://"),
        "HOME": "/nowhere",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{door.url}/compute/v1/",
    }
    assert GcpGroups(gibbon, Http(), dict, environment).read()["cpu"].size == 2
