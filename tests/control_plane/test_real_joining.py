"""Which host becomes which node, on a real API server and a real controller manager."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client
from menagerie_host import joining as joining_host

from cluster.audit.evidence import API_LISTS, Evidence
from cluster.audit.joining import no_token_approves_itself
from cluster.audit.model import Finding
from cluster.files import IN_REGION, JOIN_TOKEN_FOR
from components.control_plane import joining
from components.control_plane.host import bootstrap, csr, tokens
from components.control_plane.host.joining import Approver
from components.control_plane.objects import applied
from operations.tokens import join_tokens
from tests.control_plane.joins import CLIENT, CSR, AsHosts, Cluster, asked_pem, kubeadms_own, new_key
from tests.control_plane.joins import joining as cluster_that_is_joined
from tests.control_plane.real_api import TOKEN, started
from tests.waiting import until

AUTO = bootstrap.FORMER[0]
DEFAULT = joining.TOKENS
_ITEMS = [applied(thing) for thing in joining.objects()]


def boot(cluster: Cluster) -> None:
    """Run the steps for joining that an API server of this release does at its boot."""
    bootstrap.settle(AsHosts(cluster.real), _ITEMS)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def old(program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster whose objects for joining come from an earlier release, with kubeadm."""
    folder = tmp_path_factory.mktemp("joining")
    with cluster_that_is_joined(program, folder) as joined:
        kubeadms_own(program, joined, folder)
        yield joined


@pytest.fixture(scope="module")
def stolen(old: Cluster) -> Path:
    """Return what an attacker got from the earlier release: with one host's token, the identity of another, before this release's first boot."""
    old.node("worker-b")
    request = old.ask(old.token(DEFAULT), "worker-b")
    old.until_approved_by_anybody(request)
    return old.identity(request)


@pytest.fixture(scope="module")
def cluster(old: Cluster, stolen: Path) -> Cluster:
    """Return the same cluster after the first and second boot of this release."""
    boot(old)
    boot(old)
    return old


@pytest.fixture
def machines() -> dict[str, float]:
    """Return name -> creation time, as the cloud knows it."""
    return {}


@pytest.fixture
def approver(cluster: Cluster, machines: dict[str, float]) -> Approver:
    """Return the approver, with only its own rights."""
    ours = AsHosts(cluster.real, joining.USER)
    return Approver(ours, machines.get, lambda: time.monotonic() * 1000)  # type: ignore[arg-type]


def whoami(cluster: Cluster, identity: Path) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status, answer = cluster.as_("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, identity=identity)
    assert status == 201, answer
    return str(answer["status"]["userInfo"]["username"])


def own(host: str) -> str:
    return joining.groups(joining.group_of(host))


REGION = joining.groups(joining.REGION)


def test_on_a_cluster_of_an_earlier_release_any_token_makes_any_node(old: Cluster, stolen: Path) -> None:
    """The attack succeeds."""
    assert whoami(old, stolen) == "system:node:worker-b"
    status, _ = old.as_("GET", "/api/v1/nodes/worker-b", identity=stolen)
    assert status == 200


def test_the_first_boot_of_this_release_removes_the_rule_but_kubelets_can_still_renew(
    cluster: Cluster, stolen: Path, approver: Approver
) -> None:
    status, _ = cluster.real.call("GET", AUTO)
    assert status == 404
    attack = cluster.ask(cluster.token(own("worker-a")), "worker-b")
    approver.follow()
    # Requested after the attack, and approved by the controller manager alone.
    spec_of = cluster.call("GET", f"{CSR}/{attack}")["spec"]
    renewal = {**spec_of, "username": None, "groups": None, "uid": None, "extra": None}
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "renewal"},
    }
    status, answer = cluster.as_("POST", CSR, {**body, "spec": renewal}, identity=stolen)
    assert status == 201, answer
    cluster.until_approved_by_anybody("renewal")
    assert not cluster.approved(attack)
    assert not cluster.status(attack).get("certificate")


def test_the_token_of_a_host_joins_that_host_and_no_other(cluster: Cluster, approver: Approver) -> None:
    token = cluster.token(own("worker-c"))
    attack, honest = cluster.ask(token, "worker-d"), cluster.ask(token, "worker-c")
    approver.follow()
    assert whoami(cluster, cluster.identity(honest)) == "system:node:worker-c"
    assert not cluster.approved(attack)


def test_a_reinstalled_host_joins_with_its_own_token_although_its_node_exists(
    cluster: Cluster, approver: Approver
) -> None:
    cluster.node("worker-e")
    request = cluster.ask(cluster.token(own("worker-e")), "worker-e")
    approver.follow()
    assert whoami(cluster, cluster.identity(request)) == "system:node:worker-e"


@pytest.mark.parametrize(
    "groups",
    [DEFAULT, f"{own('worker-f')},{joining.group_of('worker-b')}", f"{own('worker-f')},{joining.REGION}"],
    ids=["of an earlier release", "for two", "for one and the region"],
)
def test_a_token_that_does_not_name_one_host_joins_none(cluster: Cluster, approver: Approver, groups: str) -> None:
    request = cluster.ask(cluster.token(groups), "worker-f")
    approver.follow()
    assert not cluster.approved(request)


@pytest.mark.parametrize(
    "changes",
    [
        {"organization": "system:masters"},
        {"names": ["api.lab.internal"]},
        {"usages": ["digital signature", "client auth", "server auth"]},
    ],
    ids=["masters", "alternative names", "further usages"],
)
def test_the_right_token_gets_only_a_kubelets_certificate(
    cluster: Cluster, approver: Approver, changes: dict[str, object]
) -> None:
    token = cluster.token(own("worker-g"))
    request, plain = cluster.ask(token, "worker-g", **changes), cluster.ask(token, "worker-g")
    approver.follow()
    assert (cluster.approved(request), cluster.approved(plain)) == (False, True)


def test_in_the_region_a_machine_of_the_cloud_becomes_the_node_of_its_name(
    cluster: Cluster, approver: Approver, machines: dict[str, float]
) -> None:
    token = cluster.token(REGION)
    machines["region-1"] = time.time() - 30
    request = cluster.ask(token, "region-1")
    approver.follow()
    assert whoami(cluster, cluster.identity(request)) == "system:node:region-1"


def test_in_the_region_nobody_becomes_an_existing_node_or_one_of_a_site_or_one_without_a_machine(
    cluster: Cluster, approver: Approver, machines: dict[str, float]
) -> None:
    token = cluster.token(REGION)
    machines["region-2"] = time.time() - 30
    cluster.node("region-2")
    attacks = [cluster.ask(token, name) for name in ("region-2", "worker-b", "region-3")]
    approver.follow()
    approver.follow()
    assert [cluster.approved(attack) for attack in attacks] == [False] * 3


def test_a_node_of_an_earlier_machine_with_the_name_does_not_keep_a_machine_out(
    cluster: Cluster, approver: Approver, machines: dict[str, float]
) -> None:
    cluster.node("region-4")
    request = cluster.ask(cluster.token(REGION), "region-4")
    approver.follow()
    assert not cluster.approved(request)
    machines["region-4"] = time.time() + 2
    approver.follow()
    assert cluster.approved(request)


def test_if_two_machines_claim_a_name_in_the_region_neither_gets_it_until_one_is_gone(
    cluster: Cluster, approver: Approver, machines: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    token = cluster.token(REGION)
    machines["region-5"] = time.time() - 30
    honest, rival = cluster.ask(token, "region-5"), cluster.ask(token, "region-5")
    approver.follow()
    assert not cluster.approved(honest)
    assert not cluster.approved(rival)
    assert f"{rival} asks to be region-5 with another key, and neither is believed" in capsys.readouterr().out
    cluster.call("DELETE", f"{CSR}/{rival}")
    approver.follow()
    assert cluster.approved(honest)


def test_a_later_claim_of_a_granted_name_is_refused(
    cluster: Cluster, approver: Approver, machines: dict[str, float]
) -> None:
    token = cluster.token(REGION)
    machines["region-6"] = time.time() - 30
    first = cluster.ask(token, "region-6")
    approver.follow()
    second = cluster.ask(token, "region-6")
    approver.follow()
    assert (cluster.approved(first), cluster.approved(second)) == (True, False)


def test_the_approver_may_approve_only_client_certificates_of_kubelets(cluster: Cluster) -> None:
    ours = AsHosts(cluster.real, joining.USER)
    for method, path in (
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/nodes"),
        ("DELETE", "/api/v1/nodes/worker-b"),
    ):
        with pytest.raises(bootstrap.ApiError, match="403"):
            ours.call(method, path)
    thing = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "admin"},
        "spec": {
            "signerName": "kubernetes.io/kube-apiserver-client",
            "request": asked_pem(new_key(), "somebody", "menagerie-people"),
            "usages": ["client auth"],
        },
    }
    request = cluster.call("POST", CSR, thing)
    request["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    with pytest.raises(bootstrap.ApiError, match="403"):
        ours.call("PUT", f"{CSR}/admin/approval", request)


def operators(cluster: Cluster) -> client.ApiClient:
    configuration = client.Configuration(host=f"https://127.0.0.1:{cluster.real.port}")
    configuration.ssl_ca_cert = str(cluster.folder / "certificates" / "apiserver.crt")
    configuration.assert_hostname = False
    configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
    return client.ApiClient(configuration)


def heard(cluster: Cluster, node: str, seconds_ago: float) -> None:
    """Write a heartbeat like a node's kubelet."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - seconds_ago))
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": at},
    }
    cluster.call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", body)


def held(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return host -> the fields of its token."""
    path = "/api/v1/namespaces/kube-system/secrets?labelSelector=" + JOIN_TOKEN_FOR
    return {
        each["metadata"]["labels"][JOIN_TOKEN_FOR]: {
            key: base64.b64decode(value).decode() for key, value in each["data"].items()
        }
        for each in cluster.call("GET", path)["items"]
    }


def test_a_run_creates_a_token_for_each_host_without_a_node_and_deletes_them(
    cluster: Cluster, approver: Approver
) -> None:
    heard(cluster, "joined-1", 3)
    heard(cluster, "silent-1", 60)
    with join_tokens(operators(cluster), ["joined-1", "silent-1", "new-1"]) as created:
        assert set(created) == set(held(cluster)) == {"silent-1", "new-1"}
        for host, fields in held(cluster).items():
            assert created[host] == f"{fields['token-id']}.{fields['token-secret']}"
            expires = time.strptime(fields["expiration"], "%Y-%m-%dT%H:%M:%SZ")
            assert time.mktime(expires) - time.mktime(time.gmtime()) <= 3600
        attack, honest = cluster.ask(created["new-1"], "silent-1"), cluster.ask(created["new-1"], "new-1")
        approver.follow()
        assert (cluster.approved(attack), cluster.approved(honest)) == (False, True)
    assert held(cluster) == {}


def test_an_interrupted_run_deletes_its_tokens_too(cluster: Cluster) -> None:
    with pytest.raises(KeyboardInterrupt), join_tokens(operators(cluster), ["new-2", "new-3"]) as created:
        assert len(created) == 2
        raise KeyboardInterrupt
    assert held(cluster) == {}


def test_the_regions_token_of_an_api_server_of_the_earlier_release_stays_valid(
    cluster: Cluster, approver: Approver, machines: dict[str, float]
) -> None:
    """While the group rolls, both releases maintain it: workers in the region can join all the time."""
    slot = int(time.time()) // tokens.SLOT_S + 1
    former = cluster.token(DEFAULT, tokens.identity(slot))
    stored: list[str] = []
    keeper = tokens.Keeper(AsHosts(cluster.real), stored.append)  # type: ignore[arg-type]
    keeper.keep(slot * tokens.SLOT_S + 2 * tokens.GRACE_S)
    assert stored == [former]
    machines["region-7"] = time.time() - 30
    for _ in range(50):
        # The API server notices the groups of a token after a moment.
        request = cluster.ask(former, "region-7")
        approver.follow()
        if cluster.approved(request):
            break
        cluster.call("DELETE", f"{CSR}/{request}")
        time.sleep(0.1)
    assert whoami(cluster, cluster.identity(request)) == "system:node:region-7"
    assert held(cluster)[IN_REGION]["auth-extra-groups"] == REGION


def test_a_rule_that_an_api_server_of_the_earlier_release_restores_during_the_roll_is_removed_by_the_next_boot(
    program: Callable[[str], Path], cluster: Cluster, approver: Approver, tmp_path: Path
) -> None:
    kubeadms_own(program, cluster, tmp_path)
    assert [each.subject for each in audited(cluster)] == [f"Group {DEFAULT}"]
    slot = int(time.time()) // tokens.SLOT_S
    in_store = cluster.token(DEFAULT, tokens.identity(slot - 1)).partition(".")[0]
    request = cluster.ask(cluster.token(own("worker-h")), "worker-h")
    approver.follow()
    assert cluster.approved(request)
    boot(cluster)
    assert cluster.real.call("GET", AUTO)[0] == 404
    assert audited(cluster) == []
    # Workers in the region that already have it can still join.
    held_now = cluster.call("GET", f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{in_store}")
    assert base64.b64decode(held_now["data"]["auth-extra-groups"]).decode() == REGION


def audited(cluster: Cluster) -> list[Finding]:
    """Return the findings of control M.14."""
    names = ("cluster roles", "cluster role bindings")
    objects = {name: tuple(cluster.call("GET", API_LISTS[name])["items"]) for name in names}
    return list(no_token_approves_itself(Evidence(objects=objects)))


def test_on_a_cluster_that_kubeadm_never_prepared_hosts_can_request_find_their_node_and_renew(
    cluster: Cluster, approver: Approver
) -> None:
    for name in ("kubelet-bootstrap", "get-nodes", "node-autoapprove-certificate-rotation"):
        cluster.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:{name}")
    cluster.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/kubeadm:get-nodes")
    boot(cluster)
    token = cluster.token(own("worker-n"))
    request = cluster.ask(token, "worker-n")
    assert cluster.as_("GET", "/api/v1/nodes/worker-n", bearer=token)[0] == 404
    assert cluster.as_("GET", "/api/v1/nodes", bearer=token)[0] == 403
    approver.follow()
    identity = cluster.identity(request)
    key = new_key()
    spec = {
        "signerName": CLIENT,
        "request": asked_pem(key, "system:node:worker-n"),
        "usages": ["digital signature", "client auth"],
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    body = {**kind, "metadata": {"name": "renewal-n"}, "spec": spec}
    assert cluster.as_("POST", CSR, body, identity=identity)[0] == 201
    cluster.until_approved_by_anybody("renewal-n")


def test_the_configuration_for_tools_that_join_hosts_is_published_once(cluster: Cluster) -> None:
    kubeconfig = f"certificate-authority-data: {base64.b64encode(b'PEM').decode()}\n"
    path = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    cluster.real.call("DELETE", path)
    for text in (kubeconfig, kubeconfig.replace("UEVN", "T1RIRVI=")):
        bootstrap.publish(AsHosts(cluster.real), text, "api.lab.internal")  # type: ignore[arg-type]
    (published,) = json.loads(cluster.call("GET", path)["data"]["kubeconfig"])["clusters"]
    assert published["cluster"]["server"] == f"https://api.lab.internal:{cluster.real.port}"
    assert base64.b64decode(published["cluster"]["certificate-authority-data"]) == b"PEM"


@contextmanager
def kubelet(program: Callable[[str], Path], cluster: Cluster, token: str, folder: Path) -> Iterator[None]:
    """Run a real kubelet that requests its first certificate as worker-k, which it does before it needs anything else from a host."""
    kubeconfig = json.loads(cluster.kubeconfig().read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    (folder / "bootstrap.conf").write_text(json.dumps(kubeconfig))
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{folder}/nobody.sock",
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [
        program("kubelet"), "--bootstrap-kubeconfig", folder / "bootstrap.conf", "--kubeconfig", folder / "kubelet.conf",
        "--config", folder / "config.yaml", "--cert-dir", folder / "pki", "--root-dir", folder / "root",
        "--hostname-override", "worker-k",
    ]  # fmt: skip
    with started("kubelet", command, folder):
        yield


def requests_of(cluster: Cluster, node: str) -> list[str]:
    listed = cluster.call("GET", CSR)["items"]
    named = {each["metadata"]["name"]: csr.parse(base64.b64decode(each["spec"]["request"]).decode()) for each in listed}
    return [name for name, parsed in named.items() if parsed.common_name == f"system:node:{node}"]


def test_a_real_kubelet_joins_with_the_right_token_even_after_an_attempt_with_a_wrong_one(
    program: Callable[[str], Path], cluster: Cluster, approver: Approver, tmp_path: Path
) -> None:
    """So the checks are not too strict for a real kubelet's request."""

    def log() -> str:
        return (tmp_path / "kubelet.log").read_text()[-3000:]

    with kubelet(program, cluster, cluster.token(DEFAULT), tmp_path):
        until(lambda: requests_of(cluster, "worker-k"), log)
    approver.follow()
    (wrong,) = requests_of(cluster, "worker-k")
    # `kubelet_join` removes this. With it, the kubelet would wait for the existing request, whatever its token.
    assert joining_host.BOOTSTRAP_KEY == "/var/lib/kubelet/pki/kubelet-client.key.tmp"
    (tmp_path / "pki" / "kubelet-client.key.tmp").unlink()
    with kubelet(program, cluster, cluster.token(own("worker-k")), tmp_path):
        until(lambda: approver.follow() or (tmp_path / "kubelet.conf").exists(), log)
    assert not cluster.approved(wrong)
    assert whoami(cluster, tmp_path / "pki" / "kubelet-client-current.pem") == "system:node:worker-k"
