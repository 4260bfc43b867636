"""A worker in the region that makes itself a node."""

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
    made = host("in_region")
    monkeypatch.setattr(made.socket, "gethostname", lambda: "VMSS00000A")
    return made


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "serving.crt").write_text("SERVING")
    join = SETTINGS["join"] | {"ca": str(tmp_path / "ca.crt"), "serving_ca": str(tmp_path / "serving.crt")}
    return SETTINGS | {"join": join, "environment": str(tmp_path / "run" / "worker.env")}


def test_the_kernel_is_set_and_the_host_s_own_written_down(region, settings, tmp_path, monkeypatch, capsys):
    asked = []

    def converge(files, swap_off, unsettable, check):
        asked.append((files, swap_off, unsettable, check))
        return region.kernel.Applied(["vm.x: 0 -> 1"], ["net.y"])

    monkeypatch.setattr(region.kernel, "converge", converge)
    (tmp_path / "70.conf").write_text("vm.x = 1\n")
    paths = [str(tmp_path / "70.conf")]
    region.prepare(settings | {"kernel": [{"paths": paths, "swap_off": True, "unsettable": "report"}]})
    assert asked == [([{"path": paths[0], "text": "vm.x = 1\n"}], True, "report", False)]
    assert (tmp_path / "run" / "worker.env").read_text() == "NODE_NAME=vmss00000a\nOWN_ADDRESS=127.0.0.1\n"
    assert capsys.readouterr().out.splitlines() == ["vm.x: 0 -> 1", "not settable here: net.y"]


def test_the_kernel_s_refusal_is_the_step_s(region, settings, monkeypatch):
    def refuse(*_):
        raise region.Refused("this kernel has no setting net.bridge")

    monkeypatch.setattr(region.kernel, "converge", refuse)
    with pytest.raises(region.Refused, match="no setting"):
        region.prepare(settings | {"kernel": [{"paths": [], "swap_off": True, "unsettable": "fail"}]})


def test_a_node_registers_under_its_own_name_and_address(region, settings):
    node = region.registration(settings)["nodeRegistration"]
    assert node["name"] == "vmss00000a"
    assert node["kubeletExtraArgs"][0] == {"name": "node-ip", "value": "127.0.0.1"}


def test_where_the_cloud_put_the_host_is_added_and_the_pool_s_own_labels_win(region, settings, monkeypatch):
    found = region.facts.Facts("aws:///z/i-1", "us-east-1", "us-east-1a", "c5.large")
    monkeypatch.setattr(region.facts, "gather", lambda cloud: found if cloud == "aws" else None)
    flags = region.registration(settings | {"cloud": "aws"})["nodeRegistration"]["kubeletExtraArgs"]
    assert flags[1]["value"].split(",") == [
        "a=b",
        "node.kubernetes.io/instance-type=c5.large",
        "topology.kubernetes.io/region=us-east-1",
        "topology.kubernetes.io/zone=mine",
    ]
    assert flags[2] == {"name": "provider-id", "value": "aws:///z/i-1"}


def test_a_pool_without_labels_gets_those_of_the_cloud(region):
    found = region.facts.Facts("gce://p/z/n", "r", "z", "m")
    flags = region.with_facts([{"name": "provider-id", "value": "own"}], found)
    assert flags[0]["value"] == "own"
    assert flags[1]["value"].startswith("node.kubernetes.io/instance-type=m,")


class Joining:
    """What `joining` does to a host, noted and not done."""

    def __init__(self, region, monkeypatch, state):
        self.converged, self.ran = [], []
        found = region.joining.Membership(state, "its CA isn't this cluster's")
        monkeypatch.setattr(region.joining, "membership", lambda ca, endpoint, now: found)
        monkeypatch.setattr(region.joining, "converge", self.converge)
        monkeypatch.setattr(region, "run", lambda words, meaning: self.ran.append(words))

    def converge(self, wanted, found, check):
        self.converged.append(wanted)
        return ["join"] if found.state != "joined" else []


@pytest.mark.parametrize("state", ["absent", "expired"])
def test_a_host_that_is_no_node_joins_and_what_follows_it_starts_anew(region, settings, monkeypatch, tmp_path, state):
    joining = Joining(region, monkeypatch, state)
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    monkeypatch.setattr(region, "fetched_token", lambda *asked: f"{asked}")
    region.join(settings)
    (wanted,) = joining.converged
    assert (wanted.ca_pem, wanted.serving_pem, wanted.endpoint) == ("CA", "SERVING", "api.horus.internal:6443")
    assert wanted.config["nodeRegistration"]["name"] == "vmss00000a"
    assert wanted.token() == str(("join-token", "api.horus.internal:6443", "CA"))
    assert joining.ran == [["systemctl", "try-restart", "flanneld.service"]]


def test_a_node_that_reboots_asks_neither_store_nor_metadata(region, settings, monkeypatch, tmp_path):
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
def test_a_node_follows_authorities_while_it_runs_and_joins_at_its_boot_only(
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
    assert joining.ran == (restarted if done else []), "it says what its kubelet works with, not what lies there"
    assert capsys.readouterr().out == "{}\n"


def test_a_node_of_another_cluster_is_left_as_it_is(region, settings, monkeypatch, tmp_path):
    joining = Joining(region, monkeypatch, "foreign")
    monkeypatch.setattr(region.joining, "RUN", str(tmp_path))
    with pytest.raises(region.Refused, match="node of another cluster: its CA"):
        region.join(settings)
    assert joining.converged == []


@pytest.fixture
def store(region, tmp_path, monkeypatch):
    """store(text): have the host's store program be this shell script."""

    def placed(script):
        program = tmp_path / "menagerie-secret"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        monkeypatch.setattr(region, "STORE", str(program))

    return placed


class Api(http.server.BaseHTTPRequestHandler):
    good = TOKEN

    def do_GET(self):
        right = self.headers.get("Authorization") == f"Bearer {self.good}"
        self.send_response(200 if right and self.path == "/api" else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def authority():
    return certificates.new_authority("kubernetes")


@pytest.fixture
def endpoint(authority, tmp_path):
    """host:port of an API server that knows one token."""
    with serving(Api, tls_of(authority, tmp_path)) as place:
        yield place


def told(token):
    return "printf '%s'" + f""" '{json.dumps({"join-token": token})}'\n"""


def test_a_token_is_fetched_for_each_attempt_and_tried_at_the_api(region, store, endpoint, authority):
    store(told(TOKEN))
    assert region.fetched_token("join-token", endpoint, authority.certificate) == TOKEN
    store(told("aaaaaa.0123456789abcdef"))
    with pytest.raises(region.Refused, match="the token has expired") as refused:
        region.fetched_token("join-token", endpoint, authority.certificate)
    assert "aaaaaa" not in str(refused.value)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (told("none yet"), "the store holds no token yet"),
        ("echo 'join-token: HTTP 403 Forbidden' >&2; exit 1\n", "^join-token: HTTP 403 Forbidden$"),
        ("exit 69\n", "menagerie-secret ended with 69"),
    ],
)
def test_without_a_token_nothing_is_begun(region, store, endpoint, authority, script, reason):
    store(script)
    with pytest.raises(region.Refused, match=reason):
        region.fetched_token("join-token", endpoint, authority.certificate)


def test_an_api_server_of_another_authority_is_shown_no_token(region, store, endpoint, monkeypatch):
    store(told(TOKEN))
    monkeypatch.setattr(Api, "do_GET", lambda self: pytest.fail("shown"))
    with pytest.raises(region.Refused, match="CERTIFICATE_VERIFY_FAILED"):
        region.fetched_token("join-token", endpoint, certificates.new_authority("other").certificate)


def test_an_api_server_that_is_down_is_told_with_its_place(region, store, authority):
    store(told(TOKEN))
    with pytest.raises(region.Refused, match=r"https://127\.0\.0\.1:1: .*refused"):
        region.fetched_token("join-token", "127.0.0.1:1", authority.certificate)


def test_a_host_joins_with_the_token_that_is_written_while_it_tries(
    region, settings, store, endpoint, authority, tmp_path, monkeypatch
):
    """An expired one first: nothing of the host is touched, and the next attempt asks the store again."""
    joining = region.joining
    ran = []
    for name in ("KUBELET_CONF", "BOOTSTRAP_CONF", "CA", "KUBELET_CONFIG", "CLIENT_CERTIFICATE"):
        monkeypatch.setattr(joining, name, str(tmp_path / name))
    monkeypatch.setattr(joining, "RUN", str(tmp_path / "run"))
    monkeypatch.setattr(joining, "MODES", {})
    monkeypatch.setattr(joining, "execute", lambda words: ran.append(words[:2]) or (0, ""))
    monkeypatch.setattr(region, "run", lambda words, meaning: ran.append(words))
    (tmp_path / "ca.crt").write_text(authority.certificate)
    own = settings | {"join": settings["join"] | {"endpoint": endpoint}}
    store(told("aaaaaa.0123456789abcdef"))
    with pytest.raises(region.Refused, match="expired"):
        region.join(own)
    assert ran == []
    store(told(TOKEN))
    region.join(own)
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
