"""A worker in the region that joins its cluster as a node."""

from __future__ import annotations

import http.server
import json

import pytest

from stacks import certificates
from tests.roles.serving import serving, tls_of

TOKEN = "abcdef.0123456789abcdef"
SETTINGS = {
    "cloud": "lab",
    "towards": "127.0.0.1",
    "placeholders": {"name": "%H", "address": "${OWN_ADDRESS}"},
    "followers": ["flanneld.service"],
    "join": {
        "config": {
            "nodeRegistration": {
                "name": "%H",
                "kubeletExtraArgs": [
                    {"name": "node-ip", "value": "${OWN_ADDRESS}"},
                    {"name": "node-labels", "value": "a=b,topology.kubernetes.io/zone=mine"},
                ],
            }
        },
        "endpoint": "api.horus.internal:6443",
        "patches": "/etc/kubernetes/patches",
        "machine": {},
        "token": "join-token",
    },
}


@pytest.fixture
def region(host, monkeypatch):
    module = host("in_region")
    monkeypatch.setattr(module.socket, "gethostname", lambda: "VMSS00000A")
    return module


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "serving.crt").write_text("SERVING")
    join = SETTINGS["join"] | {"ca": str(tmp_path / "ca.crt"), "serving_ca": str(tmp_path / "serving.crt")}
    return SETTINGS | {"join": join, "environment": str(tmp_path / "run" / "worker.env")}


def test_the_kernel_is_set_and_the_hosts_name_and_address_are_recorded(region, settings, tmp_path, monkeypatch, capsys):
    calls = []

    def converge(files, swap_off, unsettable, check):
        calls.append((files, swap_off, unsettable, check))
        return region.kernel.Applied(["vm.x: 0 -> 1"], ["net.y"])

    monkeypatch.setattr(region.kernel, "converge", converge)
    (tmp_path / "70.conf").write_text("vm.x = 1\n")
    paths = [str(tmp_path / "70.conf")]
    region.prepare(settings | {"kernel": [{"paths": paths, "swap_off": True, "unsettable": "report"}]})
    assert calls == [([{"path": paths[0], "text": "vm.x = 1\n"}], True, "report", False)]
    assert (tmp_path / "run" / "worker.env").read_text() == "NODE_NAME=vmss00000a\nOWN_ADDRESS=127.0.0.1\n"
    assert capsys.readouterr().out.splitlines() == ["vm.x: 0 -> 1", "not settable here: net.y"]


def test_a_refusal_of_the_kernel_fails_the_step(region, settings, monkeypatch):
    def refuse(*_):
        raise region.Refused("this kernel has no setting net.bridge")

    monkeypatch.setattr(region.kernel, "converge", refuse)
    with pytest.raises(region.Refused, match="no setting"):
        region.prepare(settings | {"kernel": [{"paths": [], "swap_off": True, "unsettable": "fail"}]})


def test_a_node_registers_under_its_own_name_and_address(region, settings):
    node = region.registration(settings)["nodeRegistration"]
    assert node["name"] == "vmss00000a"
    assert node["kubeletExtraArgs"][0] == {"name": "node-ip", "value": "127.0.0.1"}


def test_the_hosts_place_in_the_cloud_is_added_and_the_pools_own_labels_win(region, settings, monkeypatch):
    facts = region.facts.Facts("aws:///z/i-1", "us-east-1", "us-east-1a", "c5.large")
    monkeypatch.setattr(region.facts, "gather", lambda cloud: facts if cloud == "aws" else None)
    flags = region.registration(settings | {"cloud": "aws"})["nodeRegistration"]["kubeletExtraArgs"]
    assert flags[1]["value"].split(",") == [
        "a=b",
        "node.kubernetes.io/instance-type=c5.large",
        "topology.kubernetes.io/region=us-east-1",
        "topology.kubernetes.io/zone=mine",
    ]
    assert flags[2] == {"name": "provider-id", "value": "aws:///z/i-1"}


def test_a_pool_without_labels_gets_those_of_the_cloud(region):
    facts = region.facts.Facts("gce://p/z/n", "r", "z", "m")
    flags = region.with_facts([{"name": "provider-id", "value": "own"}], facts)
    assert flags[0]["value"] == "own"
    assert flags[1]["value"].startswith("node.kubernetes.io/instance-type=m,")


class Joining:
    """Records what `joining` would do to a host."""

    def __init__(self, region, monkeypatch, state):
        self.converged, self.ran = [], []
        membership = region.joining.Membership(state, "its CA isn't this cluster's")
        monkeypatch.setattr(region.joining, "membership", lambda ca, endpoint, now: membership)
        monkeypatch.setattr(region.joining, "converge", self.converge)
        monkeypatch.setattr(region, "run", lambda words, meaning: self.ran.append(words))

    def converge(self, desired, membership, check):
        self.converged.append(desired)
        return ["join"] if membership.state != "joined" else []


@pytest.mark.parametrize("state", ["absent", "expired"])
def test_a_host_that_is_not_a_node_joins_and_its_followers_restart(region, settings, monkeypatch, tmp_path, state):
    joining = Joining(region, monkeypatch, state)
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    monkeypatch.setattr(region, "fetched_token", lambda *arguments: f"{arguments}")
    region.join(settings)
    (desired,) = joining.converged
    assert (desired.ca_pem, desired.serving_pem, desired.endpoint) == ("CA", "SERVING", "api.horus.internal:6443")
    assert desired.config["nodeRegistration"]["name"] == "vmss00000a"
    assert desired.token() == str(("join-token", "api.horus.internal:6443", "CA"))
    assert joining.ran == [["systemctl", "try-restart", "flanneld.service"]]


def test_a_rebooting_node_reads_neither_store_nor_metadata(region, settings, monkeypatch, tmp_path):
    joining = Joining(region, monkeypatch, "joined")
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    monkeypatch.setattr(region, "registration", lambda _: pytest.fail("asked"))
    monkeypatch.setattr(region, "fetched_token", lambda *_: pytest.fail("asked"))
    region.join(settings)
    assert len(joining.converged) == 1
    assert joining.ran == []


@pytest.mark.parametrize(
    ("state", "done"), [("joined", [("CA", "SERVING")]), ("absent", []), ("expired", []), ("foreign", [])]
)
def test_a_node_follows_authorities_while_it_runs_and_joins_only_at_boot(
    region, settings, monkeypatch, tmp_path, capsys, state, done
):
    joining, followed = Joining(region, monkeypatch, state), []
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    monkeypatch.setattr(region.joining, "following", lambda *pems: [("trust", lambda: followed.append(pems))])
    monkeypatch.setattr(region.units, "outdated", lambda unit, inputs: unit == "kubelet.service" and bool(inputs))
    monkeypatch.setattr(region.joining, "announce", lambda *words: joining.ran.append(words))
    region.refresh(settings)
    assert (followed, joining.converged) == (done, [])
    restarted = [["systemctl", "try-restart", "kubelet.service"], (settings["join"]["endpoint"], "SERVING", False)]
    assert joining.ran == (restarted if done else []), "it announces what its kubelet uses, not what is in the files"
    assert capsys.readouterr().out == "{}\n"


def test_a_node_of_another_cluster_is_left_unchanged(region, settings, monkeypatch, tmp_path):
    joining = Joining(region, monkeypatch, "foreign")
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    with pytest.raises(region.Refused, match="node of another cluster: its CA"):
        region.join(settings)
    assert joining.converged == []


@pytest.fixture
def store(region, tmp_path, monkeypatch):
    """Return a function that replaces the host's store program with a shell script."""

    def placed(script):
        program = tmp_path / "menagerie-secret"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        monkeypatch.setattr(region, "STORE", str(program))

    return placed


class Api(http.server.BaseHTTPRequestHandler):
    good = TOKEN

    def do_GET(self):
        is_right = self.headers.get("Authorization") == f"Bearer {self.good}"
        self.send_response(200 if is_right and self.path == "/api" else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def authority():
    return certificates.new_authority("kubernetes")


@pytest.fixture
def endpoint(authority, tmp_path):
    """Provide host:port of an API server that knows one token."""
    with serving(Api, tls_of(authority, tmp_path)) as place:
        yield place


def token_script(token):
    return "printf '%s'" + f""" '{json.dumps({"join-token": token})}'\n"""


def test_a_token_is_fetched_for_each_attempt_and_tested_at_the_api(region, store, endpoint, authority):
    store(token_script(TOKEN))
    assert region.fetched_token("join-token", endpoint, authority.certificate) == TOKEN
    store(token_script("aaaaaa.0123456789abcdef"))
    with pytest.raises(region.Refused, match="the token has expired") as refused:
        region.fetched_token("join-token", endpoint, authority.certificate)
    assert "aaaaaa" not in str(refused.value)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (token_script("none yet"), "the store holds no token yet"),
        ("echo 'join-token: HTTP 403 Forbidden' >&2; exit 1\n", "^join-token: HTTP 403 Forbidden$"),
        ("exit 69\n", "menagerie-secret ended with 69"),
    ],
)
def test_without_a_token_nothing_is_started(region, store, endpoint, authority, script, reason):
    store(script)
    with pytest.raises(region.Refused, match=reason):
        region.fetched_token("join-token", endpoint, authority.certificate)


def test_an_api_server_of_another_authority_gets_no_token(region, store, endpoint, monkeypatch):
    store(token_script(TOKEN))
    monkeypatch.setattr(Api, "do_GET", lambda self: pytest.fail("shown"))
    with pytest.raises(region.Refused, match="CERTIFICATE_VERIFY_FAILED"):
        region.fetched_token("join-token", endpoint, certificates.new_authority("other").certificate)


def test_an_api_server_that_is_down_is_reported_with_its_address(region, store, authority):
    store(token_script(TOKEN))
    with pytest.raises(region.Refused, match=r"https://127\.0\.0\.1:1: .*refused"):
        region.fetched_token("join-token", "127.0.0.1:1", authority.certificate)


def test_a_host_joins_with_a_token_written_during_its_attempts(
    region, settings, store, endpoint, authority, tmp_path, monkeypatch
):
    """The first token has expired: the host stays untouched, and the next attempt reads the store again."""
    joining = region.joining
    ran = []
    for name in ("KUBELET_CONF", "BOOTSTRAP_CONF", "CA", "KUBELET_CONFIG", "CLIENT_CERTIFICATE"):
        monkeypatch.setattr(joining, name, str(tmp_path / name))
    monkeypatch.setattr(joining, "RUN", str(tmp_path / "run"))
    monkeypatch.setattr(joining, "MODES", {})
    monkeypatch.setattr(joining, "execute", lambda words: ran.append(words[:2]) or (0, ""))
    monkeypatch.setattr(region, "run", lambda words, meaning: ran.append(words))
    (tmp_path / "ca.crt").write_text(authority.certificate)
    settings_ = settings | {"join": settings["join"] | {"endpoint": endpoint}}
    store(token_script("aaaaaa.0123456789abcdef"))
    with pytest.raises(region.Refused, match="expired"):
        region.join(settings_)
    assert ran == []
    store(token_script(TOKEN))
    region.join(settings_)
    assert ran == [
        ["systemctl", "stop"],
        [region.KUBEADM, "join"],
        ["systemctl", "try-restart", "flanneld.service"],
    ]


@pytest.mark.parametrize("fault", [OSError("no metadata"), ValueError("no JSON"), KeyError("region")])
def test_a_failure_ends_the_step_with_its_reason(region, monkeypatch, fault, tmp_path):
    def fail(_):
        raise fault

    (tmp_path / "worker.json").write_text("{}")
    monkeypatch.setattr(region, "SETTINGS", str(tmp_path / "worker.json"))
    monkeypatch.setattr(region, "join", fail)
    monkeypatch.setattr(region.sys, "argv", ["in_region", "join"])
    with pytest.raises(SystemExit, match=str(fault)):
        region.main()
