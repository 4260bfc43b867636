"""The keeper of the join token, with a fake API server."""

from __future__ import annotations

import base64
import calendar
import copy
import json
import re
import time

import pytest

from cluster.files import IN_REGION, JOIN_TOKEN, JOIN_TOKEN_FOR
from components.control_plane import host_config, join_tokens, joining, manifests, paths, service_unit, units
from components.control_plane.host import tokens
from components.control_plane.host.api import ApiError
from network.addresses import plan

SLOT = 1_500_000
START = float(SLOT * tokens.SLOT_S)


class Cluster:
    """Secrets of kube-system, like an API server's. now: its clock."""

    def __init__(self):
        self.secrets = {}
        self.now = START
        self.requests = []

    def call(self, method, path, body=None, kind="application/json"):
        self.requests.append((method, path))
        assert path.startswith("/api/v1/namespaces/kube-system/secrets")
        name = body["metadata"]["name"] if method == "POST" else path.rpartition("/")[2]
        if method == "POST":
            if name in self.secrets:
                raise ApiError(409, "AlreadyExists")
            thing = copy.deepcopy(body)
            plain = thing.pop("stringData")
            thing["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            thing["metadata"]["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now))
            self.secrets[name] = thing
        if name not in self.secrets:
            raise ApiError(404, "NotFound")
        if method == "PATCH":
            assert kind == "application/merge-patch+json"
            self.secrets[name]["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        return copy.deepcopy(self.secrets[name])

    def field(self, name, key):
        return base64.b64decode(self.secrets[name]["data"][key]).decode()


@pytest.fixture
def cluster():
    return Cluster()


def tick(cluster, *keepers, seconds=tokens.PAUSE_S):
    cluster.now += seconds
    for keeper in keepers:
        keeper.keep(cluster.now)


def test_a_token_is_created_stored_and_valid_for_an_hour_at_most(cluster):
    store = []
    tokens.Keeper(cluster, store.append).keep(START + 5)
    ((name, secret),) = cluster.secrets.items()
    assert store == [f"{cluster.field(name, 'token-id')}.{cluster.field(name, 'token-secret')}"]
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", store[0])
    assert name == f"bootstrap-token-{store[0][:6]}"
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    expires = calendar.timegm(time.strptime(cluster.field(name, "expiration"), "%Y-%m-%dT%H:%M:%SZ"))
    assert expires - START == 3600
    assert cluster.field(name, "auth-extra-groups") == joining.groups(joining.REGION)
    assert secret["metadata"]["labels"] == {JOIN_TOKEN_FOR: IN_REGION}


def test_there_is_a_new_token_every_20_minutes_with_one_write_each(cluster):
    store = []
    keeper = tokens.Keeper(cluster, store.append)
    for _ in range(4 * 60):
        tick(cluster, keeper)
    assert len(set(store)) == len(store) == len(cluster.secrets) == 4


def test_api_servers_together_write_one_token(cluster):
    store = []
    keepers = [tokens.Keeper(cluster, store.append) for _ in range(5)]
    for _ in range(4 * 30):
        tick(cluster, *keepers)
    assert len(store) == len(cluster.secrets) == 2


def test_two_hosts_that_create_the_token_at_the_same_time_agree_on_one(cluster, monkeypatch):
    store = []
    first, second = (tokens.Keeper(cluster, store.append) for _ in range(2))
    monkeypatch.setattr(second, "_existing", lambda name: None)
    first.keep(START)
    second.keep(START)
    assert len(store) == 1


def test_another_host_steps_in_if_the_creator_of_a_token_died_before_storing_it(cluster):
    def die(value):
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        tokens.Keeper(cluster, die).keep(START)
    store = []
    keeper = tokens.Keeper(cluster, store.append)
    tick(cluster, keeper, seconds=tokens.GRACE_S - 1)
    assert store == []
    tick(cluster, keeper, keeper, seconds=2)
    assert len(store) == 1
    assert len(cluster.secrets) == 1


def test_a_failed_write_is_retried_at_once_with_the_same_token(cluster):
    outcomes, store = [RuntimeError("the store is silent"), None], []

    def put(value):
        store.append(value)
        if outcome := outcomes.pop(0):
            raise outcome

    keeper = tokens.Keeper(cluster, put)
    with pytest.raises(RuntimeError):
        keeper.keep(START)
    tick(cluster, keeper, keeper)
    assert len(store) == 2
    assert len(set(store)) == 1


@pytest.mark.parametrize("status", [403, 500])
def test_any_other_refusal_of_the_api_is_reported(cluster, status, monkeypatch):
    def refuse(*request):
        raise ApiError(status, "no")

    monkeypatch.setattr(cluster, "call", refuse)
    with pytest.raises(ApiError, match="no"):
        tokens.Keeper(cluster, print).keep(START)


def test_slots_of_ten_years_have_unique_names():
    slots = range(SLOT, SLOT + 10 * 365 * 72)
    names = {tokens.identity(slot) for slot in slots}
    assert len(names) == len(slots)
    assert all(re.fullmatch("m[a-z0-9]{5}", name) for name in names)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return program(text), which makes a shell script the store's program."""

    def placed(script):
        path = tmp_path / "menagerie-secret"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        monkeypatch.setattr(tokens, "STORE", str(path))

    return placed


def test_the_token_reaches_the_store_through_standard_input(program, tmp_path, capsys):
    program(f"""echo "$*" > {tmp_path}/words; cat > {tmp_path}/value; echo "version 3 stays" >&2\n""")
    tokens.put("abcdef.0123456789abcdef")
    assert (tmp_path / "words").read_text() == f"--put {JOIN_TOKEN}\n"
    assert (tmp_path / "value").read_text() == "abcdef.0123456789abcdef"
    assert "version 3 stays" in capsys.readouterr().out


def test_a_refusal_of_the_store_is_reported_without_the_token(program):
    program("echo 'join-token: HTTP 403' >&2; exit 1\n")
    with pytest.raises(RuntimeError, match="join-token is not in the store: join-token: HTTP 403") as failure:
        tokens.put("TOKEN")
    assert "TOKEN" not in str(failure.value)


def test_a_failure_is_reported_once_and_retried(monkeypatch, capsys):
    outcomes = [OSError("no route"), OSError("no route"), None, OSError("no route")]
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/nowhere")
    monkeypatch.setattr(tokens, "Api", lambda path: None)

    class Keeper:
        def __init__(self, api):
            pass

        def keep(self, now):
            if not outcomes:
                raise KeyboardInterrupt
            if outcome := outcomes.pop(0):
                raise outcome

    monkeypatch.setattr(tokens, "Keeper", Keeper)
    monkeypatch.setattr(tokens.time, "sleep", lambda seconds: None)
    with pytest.raises(KeyboardInterrupt):
        tokens.main()
    assert capsys.readouterr().out.count("no route") == 2


@pytest.fixture
def in_region(build):
    return build({"pools": {"cpu": {"machine": "large", "max": 5}}, "scheduling": {"gangs": True}})


def test_only_clusters_with_workers_in_the_region_have_the_unit_its_user_and_its_rights(lab, in_region, source):
    for cluster, has in ((lab, False), (in_region, True)):
        config = host_config(cluster, plan(cluster), source)
        settings = json.loads(next(file.text for file in config.files if file.path.endswith("host.json")))
        roles = [thing for thing in manifests.objects(cluster, plan(cluster)) if thing["kind"] == "Role"]
        assert ("join-tokens.service" in config.start) is has
        assert ("join-tokens" in settings["users"]) is has
        assert (join_tokens.USER in [role["metadata"]["name"] for role in roles]) is has


def test_the_unit_starts_last_and_sees_no_key_of_an_authority(in_region):
    in_order = units.units(in_region, plan(in_region))
    assert tuple(unit.name for unit in in_order) == units.ORDER
    text = service_unit.render(in_order[-1])
    for key in ("ca.key", "front-proxy-ca.key", "sa.key"):
        assert f"InaccessiblePaths=-{paths.PKI}/{key}\n" in text
    assert tokens.NAME == JOIN_TOKEN
    assert f"LoadCredential=kubeconfig:{paths.KUBERNETES}/join-tokens.conf\n" in text
