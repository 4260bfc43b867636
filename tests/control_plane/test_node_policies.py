"""What a kubelet may change in its Node, on a real API server: normal changes, and changes to attract others' pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import node_labels, places
from cluster.allocations import TEAM_KEY
from cluster.pools import POOL_LABEL, TRUSTED_POOL
from cluster.preflight import TAINT
from cluster.spec import Cluster
from components.control_plane import nodes
from components.control_plane.host import labels
from components.control_plane.host.api import ApiError
from components.control_plane.host.bootstrap import apply_all
from components.control_plane.objects import applied
from operations.drain import MARK
from operations.repair.health import SKIP
from tests.control_plane.real_api import RealApi, running
from tests.waiting import until

NODES, MERGE, STRATEGIC = "/api/v1/nodes", "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
CREATED, OK, FORBIDDEN, CONFLICT = 201, 200, 403, 409
SITE_HOST, OTHER_HOST, IN_REGION = "worker-1", "worker-2", "cloud-1"
OF_KUBELETS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux"}
OF_CLOUD = {"topology.kubernetes.io/zone": "z1", "node.kubernetes.io/instance-type": "lab-small"}
ATTACHES = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}


@pytest.fixture(scope="module")
def cluster(build: Callable[..., Cluster]) -> Cluster:
    workers = {"hardware": "dgx-h100", "labels": {"openai.org/gpu": "h100"}}
    return build({"pools": {"workers": workers}})


class Client:
    """`components.control_plane.host.api.Api` with an identity, on the real API of the test."""

    def __init__(self, api: RealApi, user: str = "", group: str = "") -> None:
        self._api, self._who = api, (user, group)

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, str]:
        status, answer = self._api.call(method, path, body, kind, *self._who)
        return status, str((answer or {}).get("message", ""))

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self._api.call(method, path, body, kind, *self._who)
        if status >= 400:
            raise ApiError(status, answer["message"])
        return answer

    def apply(self, path: str, thing: dict[str, Any], manager: str, force: bool) -> None:
        self.call("PATCH", f"{path}?fieldManager={manager}&force={str(force).lower()}", thing, APPLY)


def kubelet(api: RealApi, name: str) -> Client:
    return Client(api, f"system:node:{name}", "system:nodes")


@pytest.fixture(scope="module")
def api(
    program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory, cluster: Cluster
) -> Iterator[RealApi]:
    """Yield an API that authorizes and admits like ours, with the policies in force and the table of the spec's hosts."""
    flags = ("--authorization-mode", "Node", "--enable-admission-plugins", "NodeRestriction")
    with running(program, tmp_path_factory.mktemp("api"), *flags) as ready:
        administrator = Client(ready)
        things = nodes.objects()
        apply_all(administrator, [applied(thing, yields=thing["kind"] == "ConfigMap") for thing in things])  # type: ignore[arg-type]
        table = {"data": node_labels.table(cluster)}
        path = f"{labels.CONFIGMAPS}/{labels.TABLE}"
        assert administrator.request("PATCH", path, table, MERGE)[0] == OK
        assert administrator.request("POST", NODES, {"metadata": {"name": "probe"}})[0] == CREATED
        # Policies take effect a moment after they are created.
        until(
            lambda: (
                kubelet(ready, "probe").request("PATCH", f"{NODES}/probe?dryRun=All", labelled(a="b"), MERGE)[0]
                == FORBIDDEN
            )
        )
        probe = {"metadata": {"name": "probe-2", "labels": {places.RACK: "r"}}}
        until(lambda: kubelet(ready, "probe-2").request("POST", f"{NODES}?dryRun=All", probe)[0] == FORBIDDEN)
        companion = Client(ready, node_labels.USER)
        cordon = {"spec": {"unschedulable": True}}
        until(lambda: companion.request("PATCH", f"{NODES}/probe?dryRun=All", cordon, MERGE)[0] == FORBIDDEN)
        yield ready


def labelled(**own: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": own}}


def registration(cluster: Cluster, name: str = SITE_HOST, **own: str | None) -> dict[str, Any]:
    """Return the Node that a kubelet creates at its start (k8s.io/kubernetes, pkg/kubelet, initialNode). own: labels; None removes one."""
    (host,) = (host for _, host in cluster.host_list() if host.name == SITE_HOST)
    of_pool_or_site = (
        places.of_node(cluster, "workers", host)
        if name in (SITE_HOST, OTHER_HOST)
        else {POOL_LABEL: "region", **OF_CLOUD}
    )
    all_labels = {**OF_KUBELETS, "kubernetes.io/hostname": name, **of_pool_or_site, **own}
    taints = [{"key": TAINT.key, "effect": str(TAINT.effect)}] if name != IN_REGION else []
    metadata = {"name": name, "labels": {key: value for key, value in all_labels.items() if value is not None}}
    return {"metadata": {**metadata, "annotations": ATTACHES}, "spec": {"taints": taints}, "status": {"conditions": []}}


@pytest.fixture
def joined(api: RealApi, cluster: Cluster) -> Iterator[RealApi]:
    """Yield the API with the Nodes of a machine at a site and of a worker in the region, created by their kubelets."""
    for name in (SITE_HOST, IN_REGION):
        status, message = kubelet(api, name).request("POST", NODES, registration(cluster, name))
        assert status == CREATED, message
    yield api
    for name in (SITE_HOST, IN_REGION):
        api.call("DELETE", f"{NODES}/{name}")
    api.call("PATCH", f"{labels.CONFIGMAPS}/{labels.POOLS}", {"data": None}, MERGE)


def annotated(key: str, value: str = "x") -> dict[str, Any]:
    return {"metadata": {"annotations": {key: value}}}


CONDITIONS = {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
LEGITIMATE: dict[str, tuple[str, dict[str, Any], str]] = {
    "the kubelet's heartbeat": ("/status", {"status": {**CONDITIONS, "capacity": {"cpu": "8"}}}, STRATEGIC),
    "the kubelet's labels when it starts": ("/status", labelled(**{"topology.kubernetes.io/zone": "z2"}), STRATEGIC),
    "the kubelet's label of its name": ("/status", labelled(**{"kubernetes.io/hostname": SITE_HOST}), STRATEGIC),
    "the kubelet's annotation of drivers": ("/status", annotated("csi.volume.kubernetes.io/nodeid"), STRATEGIC),
    "the kubelet's annotation of attachments": ("/status", annotated(next(iter(ATTACHES)), "true"), STRATEGIC),
    "kubeadm's annotation": ("", annotated("kubeadm.alpha.kubernetes.io/cri-socket"), STRATEGIC),
    "flannel's annotations": ("/status", annotated("flannel.alpha.coreos.com/backend-data", "{}"), STRATEGIC),
    "which authorities it works with": ("", annotated(nodes.ANNOUNCED), MERGE),
    "preflight's verdict": ("/status", {"status": {"conditions": [{"type": "PreflightPassed", "status": "True"}]}}, STRATEGIC),
}  # fmt: skip


def test_changes_of_kubelets_and_their_companions_are_accepted(joined: RealApi) -> None:
    own = kubelet(joined, SITE_HOST)
    tries = {
        what: own.request("PATCH", f"{NODES}/{SITE_HOST}{at}", body, kind)
        for what, (at, body, kind) in LEGITIMATE.items()
    }
    assert {what: status for what, (status, _) in tries.items()} == dict.fromkeys(LEGITIMATE, OK), tries
    lease = {"metadata": {"name": SITE_HOST}, "spec": {"holderIdentity": SITE_HOST}}
    assert own.request("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)[0] == CREATED


RELABELS: dict[str, dict[str, str | None]] = {
    "another pool": {POOL_LABEL: "cpu"},
    "a storage host": {places.STORAGE_HOST: "true"},
    "another rack": {places.RACK: "r9"},
    "another rack of Ceph": {places.STORAGE_RACK: "r9"},
    "no GPU": {places.GPU_LABEL: None},
    "another GPU": {places.GPU_KIND: "B200"},
    "a team's": {TEAM_KEY: "robotics"},
    "an operator's own label": {"openai.org/gpu": "b200"},
    "a label that nobody knows": {"a.example.org/b": "c"},
    "the label of trust": {TRUSTED_POOL: "cpu"},
    "another host's name": {"kubernetes.io/hostname": "worker-3"},
}


@pytest.mark.parametrize("what", RELABELS)
def test_a_kubelet_can_not_relabel_its_node(joined: RealApi, what: str) -> None:
    own, path = kubelet(joined, SITE_HOST), f"{NODES}/{SITE_HOST}"
    before = joined.call("GET", path)[1]
    whole = {**before["metadata"]["labels"], **RELABELS[what]}
    put = {**before, "metadata": {**before["metadata"], "labels": {k: v for k, v in whole.items() if v is not None}}}
    ways = [
        own.request("PATCH", f"{path}{at}", labelled(**RELABELS[what]), kind)
        for at in ("", "/status")
        for kind in (MERGE, STRATEGIC)
    ]
    ways += [own.request("PUT", f"{path}{at}", put) for at in ("", "/status")]
    assert [status for status, _ in ways] == [FORBIDDEN] * 6, ways
    assert joined.call("GET", path)[1]["metadata"]["labels"] == before["metadata"]["labels"]


BEYOND: dict[str, dict[str, Any]] = {
    "says that it is out of service": annotated(MARK, "{}"),
    "keeps repair away": annotated(SKIP, "true"),
    "uncordons itself": {"spec": {"unschedulable": None}},
    "keeps its Node": {"metadata": {"finalizers": ["example.org/never"]}},
    "lifts its taints": {"spec": {"taints": None}},
}


def test_a_kubelet_can_not_change_anything_else_that_others_rely_on(joined: RealApi) -> None:
    path = f"{NODES}/{SITE_HOST}"
    assert joined.call("PATCH", path, {"spec": {"unschedulable": True}}, MERGE)[0] == OK
    tries = {what: kubelet(joined, SITE_HOST).request("PATCH", path, body, MERGE) for what, body in BEYOND.items()}
    assert {what: status for what, (status, _) in tries.items()} == dict.fromkeys(BEYOND, FORBIDDEN), tries
    assert kubelet(joined, SITE_HOST).request("DELETE", path)[0] == FORBIDDEN
    for body in BEYOND.values():
        assert joined.call("PATCH", f"{path}?dryRun=All", body, MERGE)[0] == OK


CLAIMS: dict[str, tuple[str, dict[str, str | None], str]] = {
    "a pool of the region": (SITE_HOST, {POOL_LABEL: "cpu"}, f"{POOL_LABEL}=cpu"),
    "to be a storage host": (SITE_HOST, {places.STORAGE_HOST: "true"}, places.STORAGE_HOST),
    "another rack": (SITE_HOST, {places.RACK: "r9"}, f"{places.RACK}=r9"),
    "another GPU": (SITE_HOST, {places.GPU_KIND: "B200"}, places.GPU_KIND),
    "another value of an operator's label": (SITE_HOST, {"openai.org/gpu": "b200"}, "openai.org/gpu=b200"),
    "to be a team's": (SITE_HOST, {TEAM_KEY: "robotics"}, TEAM_KEY),
    "to be another host": (SITE_HOST, {"kubernetes.io/hostname": "worker-3"}, "is the name of the Node"),
    "a rack, in the region": (IN_REGION, {places.RACK: "r1"}, "is no machine of a site by the spec"),
    "to be a storage host, in the region": (IN_REGION, {places.STORAGE_HOST: "true"}, "is no machine of a site"),
    "to be a team's, in the region": (IN_REGION, {TEAM_KEY: "robotics"}, "is no machine of a site"),
    "the label of trust": (IN_REGION, {TRUSTED_POOL: "cpu"}, "is not allowed to set the following labels"),
}  # fmt: skip


@pytest.mark.parametrize("what", CLAIMS)
def test_a_kubelet_whose_node_was_deleted_can_not_return_as_something_else(
    api: RealApi, cluster: Cluster, what: str
) -> None:
    name, claimed, expected = CLAIMS[what]
    own, path = kubelet(api, name), f"{NODES}?dryRun=All"
    assert own.request("POST", path, registration(cluster, name))[0] == CREATED
    status, message = own.request("POST", path, registration(cluster, name, **claimed))
    assert (status, expected in message) == (FORBIDDEN, True), message


def test_a_kubelet_registers_with_the_taints_of_the_spec_and_no_other_teams(api: RealApi, cluster: Cluster) -> None:
    for name, taints, expected in (
        (SITE_HOST, [], f"{SITE_HOST} registers without the taint {TAINT.key}=:NoSchedule"),
        (
            SITE_HOST,
            [*registration(cluster)["spec"]["taints"], {"key": TEAM_KEY, "value": "a", "effect": "NoSchedule"}],
            "whose host",
        ),
        (IN_REGION, [{"key": TEAM_KEY, "value": "a", "effect": "NoSchedule"}], "whose host"),
    ):
        body = {**registration(cluster, name), "spec": {"taints": taints}}
        status, message = kubelet(api, name).request("POST", f"{NODES}?dryRun=All", body)
        assert (status, expected in message) == (FORBIDDEN, True), message


def test_a_kubelet_that_restarts_with_old_labels_gets_an_answer_that_it_understands(
    joined: RealApi, cluster: Cluster
) -> None:
    """409 or 403: after any other answer it would never look for the existing Node (tryRegisterWithAPIServer)."""
    own = kubelet(joined, SITE_HOST)
    assert own.request("POST", NODES, registration(cluster))[0] == CONFLICT
    assert own.request("POST", NODES, registration(cluster, **{"openai.org/gpu": "a100"}))[0] == FORBIDDEN
    assert own.request("GET", f"{NODES}/{SITE_HOST}")[0] == OK


def test_operators_and_controllers_change_nodes_as_before(joined: RealApi) -> None:
    path = f"{NODES}/{SITE_HOST}"
    for what in RELABELS.values():
        assert joined.call("PATCH", f"{path}?dryRun=All", labelled(**what), MERGE)[0] == OK
    controller = Client(joined, "system:serviceaccount:kube-system:node-controller", "system:serviceaccounts")
    taint = {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}
    assert controller.request("PATCH", path, taint, STRATEGIC)[0] == OK


def test_nodes_get_the_labels_of_the_spec_and_the_one_that_no_kubelet_may_set(
    joined: RealApi, cluster: Cluster
) -> None:
    (host,) = (host for _, host in cluster.host_list() if host.name == SITE_HOST)
    joined.call("PATCH", f"{NODES}/{SITE_HOST}", labelled(**{places.RACK: "r9", "openai.org/gpu": None}), MERGE)
    keeper = labels.Keeper(Client(joined, node_labels.USER))  # type: ignore[arg-type]
    keeper.look()
    metadata = {name: joined.call("GET", f"{NODES}/{name}")[1]["metadata"] for name in (SITE_HOST, IN_REGION)}
    assert places.node_labels(cluster, "workers", host).items() <= metadata[SITE_HOST]["labels"].items()
    assert metadata[IN_REGION]["labels"][TRUSTED_POOL] == "region"
    keeper.look()
    for name, before in metadata.items():
        assert joined.call("GET", f"{NODES}/{name}")[1]["metadata"]["resourceVersion"] == before["resourceVersion"]


def test_existing_nodes_are_labelled_before_a_pod_selects_by_the_label(joined: RealApi) -> None:
    """An API server of a new release boots next to older ones: pods stay on their nodes."""
    heard = []

    class Heard(Client):
        def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
            answer = super().call(method, path, body, kind)
            heard.append((method, path.partition("?")[0]))
            return answer

    all_labels = {"app": "x"}
    template = {"metadata": {"labels": all_labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    thing = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": all_labels}, "template": template},
    }
    apply_all(Heard(joined), [applied(each, yields=True) for each in (*nodes.objects()[:2], thing)])  # type: ignore[arg-type]
    done = [path for method, path in heard if method == "PATCH"]
    assert done.index(f"{NODES}/{IN_REGION}") < done.index(applied(thing)["path"])
    joined.call("DELETE", applied(thing)["path"])


def test_a_worker_that_returns_with_another_pool_is_not_trusted(joined: RealApi, cluster: Cluster, capsys: Any) -> None:
    keeper = labels.Keeper(Client(joined, node_labels.USER))  # type: ignore[arg-type]
    keeper.look()
    joined.call("DELETE", f"{NODES}/{IN_REGION}")
    other = registration(cluster, IN_REGION, **{POOL_LABEL: "cpu"})
    assert kubelet(joined, IN_REGION).request("POST", NODES, other)[0] == CREATED
    keeper.look()
    assert TRUSTED_POOL not in joined.call("GET", f"{NODES}/{IN_REGION}")[1]["metadata"]["labels"]
    output = capsys.readouterr().out
    assert "claims pool cpu, but was in region: not believed" in output
    forget = {"data": {IN_REGION: None}}
    joined.call("PATCH", f"{labels.CONFIGMAPS}/{labels.POOLS}", forget, MERGE)
    keeper.look()
    assert joined.call("GET", f"{NODES}/{IN_REGION}")[1]["metadata"]["labels"][TRUSTED_POOL] == "cpu"


def test_the_companion_changes_only_labels_of_nodes(joined: RealApi) -> None:
    companion, path = Client(joined, node_labels.USER), f"{NODES}/{SITE_HOST}"
    tries = (
        ("PATCH", path, {"spec": {"taints": None}}, MERGE),
        ("PATCH", path, {"spec": {"unschedulable": True}}, MERGE),
        ("PATCH", path, annotated("a"), MERGE),
        ("PATCH", f"{path}/status", {"status": CONDITIONS}, MERGE),
        ("DELETE", path),
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/pods"),
        ("PATCH", f"{labels.CONFIGMAPS}/{labels.TABLE}", {"data": {"x": "y"}}, MERGE),
        ("GET", f"{labels.CONFIGMAPS}/coredns"),
    )
    assert [companion.request(*each)[0] for each in tries] == [FORBIDDEN] * len(tries)


def test_names_on_hosts_match_ours() -> None:
    assert (labels.TABLE, labels.POOLS, labels.CLAIMED, labels.TRUSTED) == (
        node_labels.TABLE,
        node_labels.POOLS,
        POOL_LABEL,
        TRUSTED_POOL,
    )
