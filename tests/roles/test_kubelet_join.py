from __future__ import annotations

import base64
import datetime
import json
import os
from pathlib import Path

import pytest

from stacks.certificates import Request, issue, new_authority

AUTHORITY, NEWER = new_authority("kubernetes"), new_authority("kubernetes-2")
CA = AUTHORITY.certificate
ENDPOINT = "10.1.0.10:6443"


TOKEN = "abcdef.0123456789abcdef"


class Commands:
    """Replaces `execute`: records commands instead of running them. said: outputs of failing `kubeadm join`, one per call."""

    def __init__(self, code=0, said=()):
        self.code = code
        self.said = list(said)
        self.commands = []
        self.configs = []

    def __call__(self, command):
        self.commands.append(command[:2])
        if command[:2] == ["kubeadm", "join"]:
            with open(command[3]) as handle:
                config = json.load(handle)
            paths = [command[3], config["discovery"]["file"]["kubeConfigPath"]]
            self.configs.append((config, json.loads(Path(paths[1]).read_text()), paths))
            assert {os.stat(path).st_mode & 0o777 for path in paths} == {0o600}
            if self.said:
                return 1, self.said.pop(0)
        return self.code, "it went wrong" if self.code else ""


PARAMS: dict[str, object] = {
    "config": {},
    "ca_pem": CA,
    "serving_ca_pem": "",
    "endpoint": ENDPOINT,
    "kubeadm": "kubeadm",
    "patches": "/nowhere",
    "token": TOKEN,
    "replace": False,
    "units": [],
    "machine": {},
}
"""Arguments that the role gives the module."""


@pytest.fixture
def host(host, tmp_path, monkeypatch):
    """Return the module behind kubelet_join, with the host's paths under a temporary folder."""
    join = host("joining")
    for name in ("KUBELET_CONF", "BOOTSTRAP_CONF", "CA", "KUBELET_CONFIG", "CLIENT_CERTIFICATE", "SERVING_CERTIFICATE"):
        monkeypatch.setattr(join, name, str(tmp_path / name))
    monkeypatch.setattr(join, "BOOTSTRAP_KEY", str(tmp_path / "kubelet-client.key.tmp"))
    monkeypatch.setattr(join, "RUN", str(tmp_path))
    monkeypatch.setattr(join, "MODES", {str(tmp_path / "KUBELET_CONFIG"): 0o600})
    monkeypatch.setattr(join.clock, "refuse_skew", lambda endpoint: None)
    monkeypatch.setattr(join.cpu_state, "PATH", str(tmp_path / "cpu_manager_state"))
    return join


@pytest.fixture
def node(host, tmp_path):
    """Return a function that makes the host a node, by default of this cluster, with a certificate for one day."""

    def made(ca=CA, endpoint=ENDPOINT, days=1):
        data = base64.b64encode(ca.encode()).decode()
        (tmp_path / "KUBELET_CONF").write_text(
            f"clusters:\n- cluster:\n    certificate-authority-data: {data}\n    server: https://{endpoint}\n"
        )
        (tmp_path / "CA").write_text(ca)
        signed = issue(AUTHORITY, Request("system:node:w1", ("system:nodes",), days=days))
        (tmp_path / "CLIENT_CERTIFICATE").write_text(signed.certificate + signed.private_key)
        (tmp_path / "KUBELET_CONFIG").write_text("kind: KubeletConfiguration\n")
        (tmp_path / "KUBELET_CONFIG").chmod(0o600)

    return made


def now():
    return datetime.datetime.now(datetime.UTC).timestamp()


@pytest.fixture
def converged(host, tmp_path, monkeypatch):
    """Return a function that converges the host, and returns the commands that ran and the reported actions."""

    def done(check=False, token=lambda: TOKEN, machine=None, asks_anew=True, **other):
        commands = Commands(**other)
        monkeypatch.setattr(host, "execute", commands)
        config = {"kind": "JoinConfiguration"}
        desired = host.Desired(
            config, CA, CA, ENDPOINT, "kubeadm", str(tmp_path / "patches"), token, machine or {}, asks_anew
        )
        return commands, host.converge(desired, host.membership(CA, ENDPOINT, now()), check)

    return done


def test_a_new_host_joins_with_its_token_in_a_private_temporary_file(converged):
    fake, actions = converged()
    assert actions == ["join"]
    ((config, kubeconfig, paths),) = fake.configs
    assert config["discovery"]["tlsBootstrapToken"] == TOKEN
    assert not [path for path in paths if os.path.exists(path)]
    cluster = kubeconfig["clusters"][0]["cluster"]
    assert cluster["server"] == f"https://{ENDPOINT}"
    assert base64.b64decode(cluster["certificate-authority-data"]).decode() == CA


def test_the_token_is_removed_when_the_join_fails(host, tmp_path, converged):
    with pytest.raises(host.Refused, match="it went wrong"):
        converged(code=1)
    assert not list(tmp_path.glob("join-*"))


def test_a_join_waits_until_the_hosts_former_node_is_not_ready(host, monkeypatch, converged):
    monkeypatch.setattr(host.time, "sleep", lambda _: None)
    still_ready = 'error execution phase kubelet-start: a Node with name "w1" and status "Ready" already exists'
    fake, actions = converged(said=[still_ready, still_ready])
    assert actions == ["join"]
    assert len(fake.configs) == 3


def test_a_node_of_this_name_that_stays_ready_is_reported_after_its_grace(host, monkeypatch, converged):
    monkeypatch.setattr(host, "NODE_GRACE", -1)
    still_ready = 'error execution phase kubelet-start: a Node with name "w1" and status "Ready" already exists'
    with pytest.raises(host.Refused, match="already exists"):
        converged(said=[still_ready])


def test_the_reason_is_found_after_kubeadms_table_of_checks(host):
    output = "\x1b[0;37mCONFIG_X\x1b[0m: enabled\n[preflight] Running\nerror execution phase preflight: fatal\n"
    output += "\t[ERROR CRI]: no runtime\nTo see the stack trace of this error execute with --v=5\n"
    assert host.why(output) == "error execution phase preflight: fatal\n\t[ERROR CRI]: no runtime"


def test_leftovers_of_an_interrupted_join_are_removed_first(tmp_path, converged):
    for name in ("BOOTSTRAP_CONF", "CA", "join-old.yaml"):
        (tmp_path / name).write_text("left")
    fake, _ = converged()
    assert ["systemctl", "stop"] in fake.commands
    assert not [name for name in ("BOOTSTRAP_CONF", "CA", "join-old.yaml") if (tmp_path / name).exists()]


@pytest.mark.parametrize("asks_anew", [True, False], ids=["at a site", "in the region"])
def test_a_host_at_a_site_uses_a_new_key_each_time_and_one_in_the_region_the_same(tmp_path, converged, asks_anew):
    """Otherwise, every later attempt would wait for a request that is pending because of its old token."""
    key = tmp_path / "kubelet-client.key.tmp"
    key.write_text("of a former attempt")
    converged(asks_anew=asks_anew)
    assert key.exists() is not asks_anew


def test_a_node_of_this_cluster_is_left_alone(node, converged):
    node()
    fake, actions = converged()
    assert actions == []
    assert fake.commands == []


def test_a_node_of_another_cluster_is_recognised_by_its_ca(host, node):
    node(ca=NEWER.certificate)
    membership = host.membership(CA, ENDPOINT, now())
    assert membership.state == "foreign"
    assert ENDPOINT in membership.reason


def test_a_node_that_talks_to_another_endpoint_is_foreign(host, node):
    node(endpoint="10.9.9.9:6443")
    assert "10.9.9.9:6443" in host.membership(CA, ENDPOINT, now()).reason


def test_a_foreign_node_is_reset_before_it_joins(node, converged):
    node(ca="other")
    fake, actions = converged()
    assert actions == ["reset", "join"]
    assert fake.commands[0] == ["kubeadm", "reset"]


def test_a_node_with_an_expired_certificate_joins_again(host, node, converged):
    node(days=0)
    assert host.membership(CA, ENDPOINT, now()).state == "expired"
    assert converged()[1] == ["join"]


def test_a_node_without_a_certificate_joins_again(host, node, tmp_path):
    node()
    (tmp_path / "CLIENT_CERTIFICATE").unlink()
    assert host.membership(CA, ENDPOINT, now()).state == "expired"


def test_a_newer_patch_renders_the_configuration_again(node, tmp_path, converged):
    node()
    os.utime(tmp_path / "KUBELET_CONFIG", (1, 1))
    (tmp_path / "patches").mkdir()
    fake, actions = converged()
    assert actions == ["render configuration"]
    assert fake.commands == [["kubeadm", "upgrade"]]


def test_modes_that_cis_requires_are_restored(node, tmp_path, converged):
    node()
    (tmp_path / "KUBELET_CONFIG").chmod(0o644)
    _, actions = converged()
    assert actions == [f"modes of {tmp_path / 'KUBELET_CONFIG'}"]
    assert (tmp_path / "KUBELET_CONFIG").stat().st_mode & 0o777 == 0o600


def test_a_bootstrap_token_left_on_a_node_is_removed(node, tmp_path, converged):
    node()
    (tmp_path / "BOOTSTRAP_CONF").write_text("token")
    assert converged()[1] == ["remove bootstrap token"]
    assert not (tmp_path / "BOOTSTRAP_CONF").exists()


def test_check_mode_lists_everything_and_does_nothing(node, tmp_path, converged):
    node(ca="other")
    (tmp_path / "KUBELET_CONFIG").chmod(0o644)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    fake, actions = converged(check=True)
    assert actions == ["reset", "join"]
    assert fake.commands == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert (tmp_path / "KUBELET_CONFIG").stat().st_mode & 0o777 == 0o644


def test_a_host_without_an_obtainable_token_is_left_unchanged(node, tmp_path, converged, host):
    """A node whose certificate has expired may still serve its pods."""

    def refuse():
        raise host.Refused("the store is silent")

    node(days=0)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(host.Refused, match="silent"):
        converged(token=refuse)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_host_with_a_wrong_clock_does_not_join_and_a_nodes_clock_is_not_checked(host, node, converged, monkeypatch):
    def refuse(endpoint):
        raise host.Refused(f"the clock of {endpoint}")

    monkeypatch.setattr(host.clock, "refuse_skew", refuse)
    with pytest.raises(host.Refused, match="the clock of 10"):
        converged()
    node()
    assert converged()[1] == []


MACHINE = {
    "reserve": True,
    "system_cpu": 200,
    "system_memory_mib": 1024,
    "max_pods": 110,
    "largest_image_gb": 0,
    "cpu_manager": "none",
    "topology_manager": "none",
}
STATIC = {**MACHINE, "cpu_manager": "static", "topology_manager": "best-effort"}


@pytest.fixture
def small(host, monkeypatch):
    """Provide a machine with two cores."""
    monkeypatch.setattr(host.machine, "look", lambda: host.machine.Machine({0: [[0], [1]]}, 24 * 2**30, 2**40))
    monkeypatch.setattr(host.machine, "online", lambda: [0, 1])


def placed(tmp_path):
    return json.loads((tmp_path / "patches" / "kubeletconfiguration+merge.json").read_text())


def test_the_reservations_are_written_before_the_join_and_render_the_configuration_once(
    node, small, tmp_path, converged
):
    fake, actions = converged(machine=MACHINE)
    assert actions == ["the kubelet's share of the machine", "join"]
    assert placed(tmp_path)["kubeReserved"] == {"cpu": "70m", "memory": "1465Mi"}
    node()
    assert converged(machine=MACHINE)[1] == []
    again = {**MACHINE, "system_cpu": 300}
    assert converged(check=True, machine=again)[1] == ["the kubelet's share of the machine", "render configuration"]
    assert placed(tmp_path)["systemReserved"]["cpu"] == "200m"
    fake, actions = converged(machine=again)
    assert fake.commands == [["kubeadm", "upgrade"]]
    assert placed(tmp_path)["systemReserved"]["cpu"] == "300m"


def test_a_changed_cpu_policy_waits_for_a_drained_node(host, node, small, tmp_path, converged, monkeypatch):
    node()
    state = tmp_path / "cpu_manager_state"
    state.write_text('{"policyName": "none", "defaultCpuSet": "", "checksum": 1}')
    endpoints = []
    pods = ["a/1", "a/2", "b/3", "b/4"]
    monkeypatch.setattr(host.cpu_state, "pods", lambda *words: endpoints.append(words[0]) or pods)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(host.Refused, match=r"changes from none to static; .*a/1, a/2, b/3 and 1 more.*kubectl drain"):
        converged(machine=STATIC)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    pods.clear()
    fake, actions = converged(machine=STATIC)
    assert actions[-2:] == ["render configuration", "forget which pods have which CPUs"]
    assert fake.commands == [["kubeadm", "upgrade"], ["systemctl", "stop"]]
    assert not state.exists()
    assert endpoints == [ENDPOINT, ENDPOINT]


def test_an_operators_patch_decides_whether_the_cpu_policy_changes(node, small, tmp_path, converged):
    node()
    (tmp_path / "cpu_manager_state").write_text('{"policyName": "none"}')
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "kubeletconfiguration0+merge.json").write_text('{"cpuManagerPolicy": "none"}')
    assert converged(machine=STATIC)[1] == ["the kubelet's share of the machine", "render configuration"]


def test_a_host_that_is_not_a_node_forgets_its_cpu_state_without_a_drain(small, tmp_path, converged):
    (tmp_path / "cpu_manager_state").write_text('{"policyName": "none"}')
    assert converged(machine=STATIC)[1][-2:] == ["forget which pods have which CPUs", "join"]


@pytest.mark.parametrize(
    ("state", "changes", "reason"),
    [
        ("foreign", {}, "node of another cluster: its CA.*kubelet_replace"),
        ("absent", {"token": ""}, "got no join token"),
        ("expired", {"token": ""}, "got no join token"),
    ],
)
def test_the_module_refuses_what_an_operator_must_decide_or_provide(module, host, state, changes, reason):
    params = PARAMS | changes
    with pytest.raises(host.Refused, match=reason):
        module("kubelet_join").converge(params, host.Membership(state, "its CA isn't this cluster's"), False)


def test_the_module_joins_with_its_token_and_then_converges_its_units(module, host, monkeypatch):
    joined, converged = [], []
    monkeypatch.setattr(host, "join", lambda desired: joined.append((desired.endpoint, desired.token())))
    join = module("kubelet_join")
    current = join.units.Current(["start kubelet.service"], [])
    monkeypatch.setattr(join.units, "converge", lambda units, check: converged.append((units, check)) or current)
    params = PARAMS | {"units": [{"unit": "kubelet.service"}]}
    monkeypatch.setattr(
        host,
        "announce",
        lambda endpoint, serving, check, joined: [f"say it {(endpoint, serving == CA, check, joined)}"],
    )
    actions = join.converge(params, host.Membership("absent"), False)
    assert actions == ["join", "start kubelet.service", f"say it {(ENDPOINT, True, False, True)}"], (
        "last, because it is true only then"
    )
    assert joined == [(ENDPOINT, TOKEN)]
    assert converged == [([{"unit": "kubelet.service"}], False)]


@pytest.mark.parametrize(
    ("state", "check", "announced"),
    [
        ("joined", False, [(ENDPOINT, False, False)]),
        ("joined", True, [(ENDPOINT, True, False)]),
        ("absent", True, []),
    ],
)
def test_a_node_announces_its_authorities_and_a_dry_run_of_a_non_node_makes_no_request(
    module, host, monkeypatch, state, check, announced
):
    calls = []
    join = module("kubelet_join")
    monkeypatch.setattr(join.units, "converge", lambda units, check: join.units.Current([], []))
    monkeypatch.setattr(host, "converge", lambda desired, membership, check: [])
    monkeypatch.setattr(
        host, "announce", lambda endpoint, _, check, joined: calls.append((endpoint, check, joined)) or []
    )
    assert join.converge(PARAMS, host.Membership(state), check) == []
    assert calls == announced


def test_the_announcement_waits_for_a_host_that_has_just_joined(host, monkeypatch):
    calls = []
    monkeypatch.setattr(host.announcing, "converge", lambda *words: calls.append((words[0], words[2:])) or [])
    host.announce(ENDPOINT, CA, False, joined=True)
    host.announce(ENDPOINT, CA, True)
    assert calls == [(ENDPOINT, (CA, False, 120)), (ENDPOINT, (CA, True, 0))]


class CutOff(BaseException):
    """The machine is switched off."""


class Kubelet:
    """Replaces systemctl and the kubelet, which at its start gets each certificate that it lacks.

    gives: number of certificates before it is cut off.
    """

    def __init__(self, folder, signer, gives=2):
        self.folder, self.signer, self.gives, self.commands, self.asked_as = folder, signer, gives, [], []

    def __call__(self, command):
        self.commands.append(command[1])
        links = {name: self.folder / name for name in ("CLIENT_CERTIFICATE", "SERVING_CERTIFICATE")}
        missing = [path for path in links.values() if command[1] == "start" and not path.exists()]
        for given, path in enumerate(missing):
            if given == self.gives:
                raise CutOff
            if path.name == "CLIENT_CERTIFICATE":
                self.asked_as.append((self.folder / "BOOTSTRAP_CONF").read_text())
            signed = issue(self.signer, Request("system:node:w1", ("system:nodes",)))
            path.write_text(signed.certificate + signed.private_key)
        return 0, ""


@pytest.fixture
def rotated(host, node, tmp_path, monkeypatch):
    """Return a function that converges a node of the first authority with a bundle, while `signer` signs."""

    def done(*bundle, signer, serving=None, check=False):
        monkeypatch.setattr(host, "execute", kubelet := Kubelet(tmp_path, signer))
        ca_pem = "".join(authority.certificate for authority in bundle)
        serving_pem = serving.certificate if serving else ca_pem
        config = {"kind": "JoinConfiguration"}
        desired = host.Desired(
            config, ca_pem, serving_pem, ENDPOINT, "kubeadm", str(tmp_path / "patches"), lambda: TOKEN, {}
        )
        return kubelet, host.converge(desired, host.membership(ca_pem, ENDPOINT, now()), check)

    node()
    real = tmp_path / "kubelet-client-2026.pem"
    (tmp_path / "CLIENT_CERTIFICATE").rename(real)
    (tmp_path / "CLIENT_CERTIFICATE").symlink_to(real)
    (tmp_path / "SERVING_CERTIFICATE").write_text(real.read_text())
    text = (tmp_path / "KUBELET_CONF").read_text()
    (tmp_path / "KUBELET_CONF").write_text(text + f"    client-certificate: {tmp_path}/CLIENT_CERTIFICATE\n")
    return done


def trusted(tmp_path):
    text = (tmp_path / "KUBELET_CONF").read_text()
    data = next(line.split(": ")[1] for line in text.splitlines() if "authority-data" in line)
    return base64.b64decode(data).decode(), (tmp_path / "CA").read_text()


def test_a_node_trusts_a_new_authority_and_keeps_its_certificates(tmp_path, rotated):
    kubelet, actions = rotated(AUTHORITY, NEWER, signer=AUTHORITY)
    assert actions == ["trust the cluster's authorities"]
    both = AUTHORITY.certificate + NEWER.certificate
    assert trusted(tmp_path) == (both, both)
    assert kubelet.commands == [], "its unit is restarted because of the file of authorities"
    assert rotated(AUTHORITY, NEWER, signer=AUTHORITY)[1] == []


def test_a_kubelet_requests_certificates_of_the_signing_authority_with_its_old_identity(tmp_path, rotated):
    rotated(AUTHORITY, NEWER, signer=AUTHORITY)
    kubelet, actions = rotated(NEWER, AUTHORITY, signer=NEWER)
    assert actions == ["trust the cluster's authorities", "certificates of the authority that signs"]
    assert kubelet.commands == ["stop", "start"]
    (asked_as,) = kubelet.asked_as
    assert f"client-certificate: {tmp_path}/kubelet-client-2026.pem" in asked_as
    assert not (tmp_path / "BOOTSTRAP_CONF").exists()
    assert rotated(NEWER, AUTHORITY, signer=NEWER)[1] == []
    assert rotated(NEWER, signer=NEWER)[1] == ["trust the cluster's authorities"]
    assert trusted(tmp_path) == (NEWER.certificate,) * 2


@pytest.mark.parametrize("gives", [0, 1])
def test_an_interrupted_renewal_continues_without_a_token(host, tmp_path, rotated, monkeypatch, gives):
    rotated(AUTHORITY, NEWER, signer=AUTHORITY)
    both = NEWER.certificate + AUTHORITY.certificate

    def follow(kubelet):
        monkeypatch.setattr(host, "execute", kubelet)
        membership = host.membership(both, ENDPOINT, now())
        steps = host.following(both, both) if host.is_node(membership) else []
        for _, act in steps:
            act()
        return [name for name, _ in steps]

    with pytest.raises(CutOff):
        follow(Kubelet(tmp_path, NEWER, gives))
    assert host.membership(both, ENDPOINT, now()).state == ("joined" if gives else "expired")
    kubelet = Kubelet(tmp_path, NEWER)
    assert follow(kubelet) == ["certificates of the authority that signs"]
    assert kubelet.commands[-1] == "start"
    assert not (tmp_path / "BOOTSTRAP_CONF").exists()
    assert follow(Kubelet(tmp_path, NEWER)) == []


def test_a_host_with_an_expired_certificate_is_not_a_node_whatever_kubeadm_left(host, node, tmp_path):
    node()
    (tmp_path / "BOOTSTRAP_CONF").write_text("token: abcdef.0123456789abcdef\n")
    assert not host.is_node(host.membership(CA, ENDPOINT, now() + 2 * 86400))


def test_a_kubelet_requests_a_serving_certificate_of_its_authority_without_trusting_it(host, tmp_path, rotated):
    before = (tmp_path / "CLIENT_CERTIFICATE").read_text()
    kubelet, actions = rotated(AUTHORITY, signer=NEWER, serving=NEWER)
    assert actions == ["certificates of the authority that signs"]
    assert (kubelet.commands, kubelet.asked_as) == (["stop", "start"], [])
    assert (tmp_path / "CLIENT_CERTIFICATE").read_text() == before
    assert not host.authorities.foreign_certificates(CA, NEWER.certificate, host.own_files())
    assert trusted(tmp_path) == (CA, CA)
    assert rotated(AUTHORITY, signer=NEWER, serving=NEWER)[1] == []


def test_another_certificate_of_the_old_authority_is_reported(host, rotated, monkeypatch):
    monkeypatch.setattr(host.authorities, "PATIENCE_S", -1)
    with pytest.raises(host.Refused, match="got no new certificate.*CLIENT_CERTIFICATE"):
        rotated(NEWER, AUTHORITY, signer=AUTHORITY)


def test_a_dry_run_lists_what_would_change_for_another_authority(tmp_path, rotated):
    kubelet, actions = rotated(NEWER, AUTHORITY, signer=NEWER, check=True)
    assert len(actions) == 2
    assert kubelet.commands == []
    assert trusted(tmp_path) == (CA, CA)


def test_a_node_that_missed_a_whole_rotation_counts_as_another_clusters(host, node):
    node()
    assert host.membership(NEWER.certificate, ENDPOINT, now()).state == "foreign"
