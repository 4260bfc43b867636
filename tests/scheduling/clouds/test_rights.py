"""The rights of the autoscaler: what stands in the documentation, and what it asks the clouds for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cluster.load import load_cluster
from scheduling.autoscaler.choose import groups_of
from scheduling.autoscaler.clouds import rights
from scheduling.autoscaler.clouds.aws.groups import AwsGroups
from scheduling.autoscaler.clouds.azure.groups import AzureGroups
from scheduling.autoscaler.clouds.gcp.groups import GcpGroups
from scheduling.autoscaler.clouds.http import Http
from stacks.azure.tags import autoscaler_tags
from stacks.azure.tags import tags as azure_tags
from stacks.gcp.tags import labels, of_cluster
from tests.scheduling.clouds.door import Asked, Door, served
from tests.scheduling.clouds.fakes import TOKEN, Google, Microsoft, split

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", sorted(rights.documents("CLUSTER")))
def test_the_documentation_has_the_rights_as_they_are(name: str) -> None:
    file, text = ROOT / "docs" / name, rights.documents("CLUSTER")[name]
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        file.write_text(text)
    assert file.read_text() == text


def all_of_it(seen: Any, pool: str, more: int) -> None:
    size = seen.read()[pool].size
    seen.grow(pool, size + more)
    seen.remove(pool, [seen.read()[pool].machines[0].id])


def test_azure_is_asked_for_no_more_than_the_role_has_and_for_all_of_it() -> None:
    koala = load_cluster(ROOT / "docs/examples/azure-small.yaml")
    microsoft = Microsoft()
    marks = {**azure_tags(koala, "pool-cpu"), **autoscaler_tags(koala, "cpu", koala.spec.pools["cpu"])}
    made = microsoft.add("koala_workers", "pool-cpu", marks, 4)
    made.capacity, made.state = 5, "Failed"
    with served(Door(microsoft.answer)) as door:
        environment = {"ARM_USE_MSI": "1", "ARM_SUBSCRIPTION_ID": "a-sub", "ARM_ENDPOINT": door.url}
        seen = AzureGroups(koala, Http(), dict, environment)
        seen._bearers._new = lambda: rights_token()  # type: ignore[method-assign]
        all_of_it(seen, "cpu", 2)
    asked = {operation for each in door.log for operation in of_azure(each)}
    assert asked == set(rights.AZURE)


def rights_token() -> Any:
    from scheduling.autoscaler.clouds.bearer import Token

    return Token.lasting(TOKEN, 3600)


def of_azure(asked: Asked) -> set[str]:
    kind = "Microsoft.Compute/virtualMachineScaleSets"
    path, query = split(asked)
    what = path.rpartition("/")[2]
    if what == "virtualMachines":
        viewed = {f"{kind}/virtualMachines/instanceView/read"} if query.get("$expand") == "instanceView" else set()
        return {f"{kind}/virtualMachines/read"} | viewed
    if what in ("delete", "instanceView"):
        return {f"{kind}/delete/action" if what == "delete" else f"{kind}/instanceView/read"}
    return {f"{kind}/{'write' if asked.method == 'PATCH' else 'read'}"}


def test_google_is_asked_for_no_more_than_the_role_has_and_for_all_of_it() -> None:
    gibbon = load_cluster(ROOT / "docs/examples/gcp-small.yaml")
    google = Google(region="us-central1")
    for zone in map(str, gibbon.spec.control_plane.zones):
        google.add(zone, f"gibbon-cpu-{zone}", of_cluster(gibbon) | labels("worker") | {"pool": "cpu"}, 1)
    with served(Door(google.answer)) as door:
        environment = {
            "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
            "GOOGLE_PROJECT": "a-project",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": door.url,
        }
        all_of_it(GcpGroups(gibbon, Http(), dict, environment), "cpu", 2)
    verbs = {
        "listManagedInstances": "get",
        "resize": "update",
        "deleteInstances": "update",
        "instanceGroupManagers": "list",
    }
    asked = set()
    for each in door.log:
        what = split(each)[0].rpartition("/")[2]
        known = "compute.instanceTemplates.list" if what == "instanceTemplates" else ""
        asked.add(known or f"compute.instanceGroupManagers.{verbs[what]}")
    assert asked == set(rights.GCP)


@pytest.mark.parametrize(
    ("example", "kind"), [("aws-small", AwsGroups), ("azure-small", AzureGroups), ("gcp-small", GcpGroups)]
)
def test_a_clusters_groups_are_those_of_its_cloud(example: str, kind: Any) -> None:
    made = groups_of(load_cluster(ROOT / f"docs/examples/{example}.yaml"), lambda: pytest.fail("asked"))
    assert isinstance(made, kind)
