"""Other programs of an API-server host."""

from __future__ import annotations

import json

import pytest

from components.control_plane.host import bootstrap, phases
from components.control_plane.host.api import Api, ApiError

LINKS = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]},
    {"ifname": "eth1", "addr_info": [{"local": "10.79.2.11"}]},
    {"ifname": "eth0", "addr_info": [{"local": "10.77.0.10"}, {"local": "10.77.0.11"}]},
]


def test_a_hosts_own_address_is_in_the_range_of_nodes_and_not_the_load_balancers():
    assert phases.own_address(LINKS, "10.77.0.0/24", ["10.77.0.10"]) == "10.77.0.11"


def test_a_host_outside_the_range_of_nodes_gets_an_error_with_its_addresses():
    with pytest.raises(LookupError, match=r"no address in 10\.50\.0\.0/16, only 127\.0\.0\.1, 10\.79\.2\.11"):
        phases.own_address(LINKS, "10.50.0.0/16", ["10.50.0.10"])


def test_an_api_server_advertises_the_load_balancer_of_its_own_zone():
    balancers = ["10.40.0.4", "10.40.0.68", "10.40.0.132"]
    assert [phases.advertised(f"10.40.0.{last}", balancers) for last in (5, 30, 70, 95, 140)] == [
        *["10.40.0.4"] * 2,
        *["10.40.0.68"] * 2,
        "10.40.0.132",
    ]


def test_only_the_local_configuration_bypasses_the_load_balancer(config, tmp_path, monkeypatch):
    template = tmp_path / "kubeadm.yaml.in"
    template.write_text(next(f.text for f in config.files if f.path.endswith("kubeadm.yaml")))
    monkeypatch.setattr(phases, "TEMPLATE", template)
    monkeypatch.setattr(phases, "RUN", tmp_path)
    settings = json.loads(next(f.text for f in config.files if f.path.endswith("host.json")))
    phases.render_config(settings, "10.77.0.11")
    uploaded, local = ((tmp_path / name).read_text() for name in ("kubeadm.yaml", "local.yaml"))
    assert "controlPlaneEndpoint: 10.77.0.10:6443" in uploaded
    assert "controlPlaneEndpoint: 10.77.0.11:6443" in local
    assert ["advertiseAddress: '10.77.0.11'" in text for text in (uploaded, local)] == [True, True]
    assert (tmp_path / "local.yaml").stat().st_mode & 0o777 == 0o600


class Refusing:
    def __init__(self, status):
        self.status = status

    def apply(self, path, thing, manager, force):
        raise ApiError(self.status, "conflict")


def test_changes_by_people_in_a_configmap_stay(capsys):
    bootstrap.apply(Refusing(409), {"path": "/x", "object": {}, "force": False})
    assert "somebody's change is kept" in capsys.readouterr().out


@pytest.mark.parametrize(("status", "force"), [(409, True), (403, False)])
def test_any_other_refusal_of_a_manifest_fails_the_bootstrap(status, force):
    with pytest.raises(ApiError):
        bootstrap.apply(Refusing(status), {"path": "/x", "object": {}, "force": force})


def test_a_phase_that_lost_a_race_is_retried(monkeypatch, tmp_path):
    outcomes = [RuntimeError("AlreadyExists"), RuntimeError("Conflict"), None]
    commands = []

    def kubeadm(*words):
        commands.append(words)
        if outcome := outcomes.pop(0):
            raise outcome

    monkeypatch.setattr(bootstrap, "kubeadm", kubeadm)
    monkeypatch.setattr(bootstrap.time, "sleep", lambda seconds: None)
    bootstrap.phase(["addon", "kube-proxy"], tmp_path / "super-admin.conf")
    assert len(commands) == 3


def test_no_phase_of_kubeadm_creates_the_rule_that_makes_any_token_any_node():
    """Even for a moment it would be dangerous: the controller manager retries waiting requests."""
    assert [words for words in bootstrap.PHASES if words[0] == "bootstrap-token"] == []


class Cluster:
    """An API with only kubeadm's configuration."""

    def __init__(self, release):
        self.release = release

    def call(self, method, path):
        if not self.release:
            raise ApiError(404, "not found")
        return {"data": {"ClusterConfiguration": f"kind: ClusterConfiguration\nkubernetesVersion: {self.release}\n"}}


@pytest.mark.parametrize(
    ("release", "other"), [("", ""), ("v1.36.4", ""), ("v1.35.4", "v1.35.4"), ("v1.36.3", "v1.36.3")]
)
def test_a_new_host_leaves_kube_proxy_alone_while_the_cluster_runs_another_release(
    config, tmp_path, monkeypatch, release, other
):
    """Otherwise the first host of an upgrade would install a kube-proxy that is newer than the other API servers."""
    monkeypatch.setattr(bootstrap, "RUN", tmp_path)
    (tmp_path / "kubeadm.yaml").write_text(next(f.text for f in config.files if f.path.endswith("kubeadm.yaml")))
    assert bootstrap.other_release(Cluster(release)) == other


def test_an_api_that_refuses_to_tell_its_release_fails_the_bootstrap(tmp_path, monkeypatch):
    class Refuses:
        def call(self, method, path):
            raise ApiError(403, "forbidden")

    monkeypatch.setattr(bootstrap, "RUN", tmp_path)
    with pytest.raises(ApiError):
        bootstrap.other_release(Refuses())


def test_a_kubeconfig_without_a_server_is_refused(tmp_path):
    (tmp_path / "kubeconfig").write_text(json.dumps({"clusters": []}))
    with pytest.raises(ValueError, match="no server"):
        Api(tmp_path / "kubeconfig")
