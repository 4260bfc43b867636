"""Every control on evidence that violates it, which must fail, or be an exception or manual; and without evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster import counts, places
from cluster.allocations import CONTROLLERS_NAMESPACE, SYSTEM_LABEL
from cluster.audit.controls import controls
from cluster.audit.decide import ATTEMPTS, decided
from cluster.audit.evidence import Certificates, Evidence, File, Kind, Socket, Unseen
from cluster.audit.model import Control, Requirement, Status
from cluster.audit.serving import SERVING
from cluster.files import IN_REGION, JOIN_TOKEN_FOR
from cluster.pools import POOL_LABEL, TRUSTED_POOL
from stacks.certificates import Request, issue, new_authority
from tests.audit import support
from tests.audit.support import attempted, changed, folder, root_file, with_files, with_flag, with_objects

Spoil = Callable[[Evidence], Evidence]
BY_ID = {control.id: control for control in controls()}


def bad(requirement: Requirement) -> str | None:
    """Return a wrong value for a flag."""
    (name,) = requirement.model_fields_set - {"or_unset"}
    return {
        "equals": "something-else",
        "other_than": str(requirement.other_than).lower(),
        "set": None if requirement.set else "x",
        "has": "AnotherOne",
        "lacks": f"AnotherOne,{requirement.lacks}",
        "at_least": str((requirement.at_least or 0) - 1),
        "within": "TLS_RSA_WITH_RC4_128_SHA",
    }[name]


def of_flags(control: Control) -> Iterator[Spoil]:
    """Yield one change per flag."""
    assert control.flags
    for name, requirement in control.flags.of.items():
        program = control.flags.program
        yield lambda e, name=name, requirement=requirement, program=program: changed(  # type: ignore[misc]
            e, control.hosts or Kind.API, lambda report: with_flag(report, program, name, bad(requirement))
        )


def of_files(control: Control) -> Iterator[Spoil]:
    """Yield one change per pattern: a file with a wrong mode or owner."""
    assert control.files
    rule, kind = control.files, control.hosts or Kind.API
    patterns = rule.paths or ("/var/lib/etcd/events",)
    for pattern in patterns:
        path = pattern.replace("*", "x")
        mode, owner = ("0777", "root:root") if rule.mode else ("0600", "nobody:nogroup")
        owner = "etcd:etcd" if rule.mode and rule.named_by else owner
        spoiled = File(kind="file", mode=mode, owner=owner, secret=False)
        yield lambda e, path=path, spoiled=spoiled: changed(  # type: ignore[misc]
            e, kind, lambda report: with_files(report, **{path: spoiled})
        )


def of_kubelet(control: Control) -> Iterator[Spoil]:
    assert control.kubelet
    for key, requirement in control.kubelet.items():
        value: object = bad(requirement)
        for part in reversed(key.split(".")):
            value = {part: value}
        yield lambda e, value=value: replace(e, kubelets={**e.kubelets, "worker-2": value})  # type: ignore[misc]


def derived() -> list[Any]:
    """Return changes for controls that are only comparisons."""
    makers = ((of_flags, "flags"), (of_files, "files"), (of_kubelet, "kubelet"))
    return [
        pytest.param(control, spoil, id=f"{control.id}-{number}")
        for control in controls()
        for maker, name in makers
        if getattr(control, name)
        for number, spoil in enumerate(maker(control))
    ]


def expect_broken(control: Control, evidence: Evidence) -> str:
    """Assert that a control isn't met, and return what was seen."""
    result = decided(control, evidence)
    expected = Status.EXCEPTION if control.exception else Status.MANUAL if control.manual else Status.FAIL
    assert result.status is expected, result.observed
    assert any(finding.ok is False for finding in result.findings)
    return result.observed


@pytest.mark.parametrize(("control", "spoil"), derived())
def test_a_wrong_setting_or_mode_is_found(control: Control, spoil: Spoil, good: Evidence) -> None:
    expect_broken(control, spoil(good))


def text(flag_file: str, says: str) -> Spoil:
    return lambda e: changed(
        e, Kind.API, lambda r: {"texts": {**r.texts, f"/etc/kubernetes/menagerie/{flag_file}": says}}
    )


def wider(kind: Kind, path: str, **more: Any) -> Spoil:
    return lambda e: changed(e, kind, lambda r: with_files(r, **{path: root_file("0640", **more)}))


def certificate(kind: Kind, path: str, pem: str) -> Spoil:
    held = Certificates(path=path, pem=(pem,))
    return lambda e: changed(
        e, kind, lambda r: {"certificates": (held, *(each for each in r.certificates if each.path != path))}
    )


def bound(verb: str, resource: str, role: str = "theirs") -> Spoil:
    """Somebody with a right, through their own role and binding."""
    rule = {"verbs": [verb], "resources": [resource], "apiGroups": ["*"]}
    binding = {
        "metadata": {"name": "somebody"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "mia"}],
    }
    roles = [{"metadata": {"name": role}, "rules": [rule]}]
    return lambda e: with_objects(e, cluster_roles=roles, cluster_role_bindings=[binding])


def auto_approved(subject: str) -> Spoil:
    """The binding of kubeadm's phase bootstrap-token, with Kubernetes' role."""
    role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
    rule = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/nodeclient"],
        "verbs": ["create"],
    }
    binding = {
        "metadata": {"name": "kubeadm:node-autoapprove-bootstrap"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "name": subject}],
    }
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    roles = [{"metadata": {"name": role, "labels": labels}, "rules": [rule]}]
    return lambda e: with_objects(e, cluster_roles=roles, cluster_role_bindings=[binding])


def api_service(**more: Any) -> Mapping[str, Any]:
    """An APIService of metrics-server."""
    service = {"name": "metrics-server", "namespace": "kube-system"}
    return {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": {"service": service, **more}}


def join_token(age_s: float = 60, **labels: str) -> Spoil:
    """A bootstrap token as an audit sees it: only its metadata."""
    created = datetime.fromtimestamp(support.NOW - age_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {
        "name": "bootstrap-token-abcdef",
        "namespace": "kube-system",
        "creationTimestamp": created,
        "labels": labels,
    }
    return lambda e: with_objects(e, bootstrap_tokens=[{"metadata": metadata}])


def bound_subject(**subject: str) -> Spoil:
    binding = {
        "metadata": {"name": "x", "namespace": "vision"},
        "roleRef": {"kind": "Role", "name": "y"},
        "subjects": [subject],
    }
    return lambda e: with_objects(e, role_bindings=[binding])


LOGS = support.LOGS
SAFE: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(space: str = "vision", spec: Mapping[str, Any] | None = None, **container: Any) -> Mapping[str, Any]:
    """A pod that violates nothing except what the test sets."""
    context = {**SAFE, **container.pop("context", {})}
    first = {"name": "train", "image": "registry.example.org/train:1", "securityContext": context, **container}
    return {"metadata": {"name": "p", "namespace": space}, "spec": {"containers": [first], **(spec or {})}}


def pods(*listed: Mapping[str, Any]) -> Spoil:
    return lambda e: with_objects(e, pods=listed)


def node(name: str, **labels: str) -> Mapping[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def nodes(*listed: Mapping[str, Any]) -> Spoil:
    return lambda e: with_objects(e, nodes=listed)


def on_a_node(one: Mapping[str, Any], *listed: Mapping[str, Any]) -> Spoil:
    return lambda e: with_objects(e, pods=[one], nodes=listed)


def namespace(name: str, **labels: str) -> Spoil:
    return lambda e: with_objects(e, namespaces=[{"metadata": {"name": name, "labels": labels}}])


def gang(made: str, *true: str) -> Mapping[str, Any]:
    """A Job that is a gang. true: its true conditions."""
    return {
        "metadata": {"name": "train", "namespace": "vision", "creationTimestamp": made},
        "spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "train"}}}},
        "status": {"conditions": [{"type": each, "status": "True"} for each in true]},
    }


TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}, "name": "t"}
SECRET_REF = {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
STRANGER = new_authority("of-somebody")
SHORT = issue(STRANGER, Request("short", days=5)).certificate
OF_MAIN = issue(support.AUTHORITIES["etcd-main"], Request("etcd-events-1")).certificate
SPOILED: Mapping[str, Spoil] = {
    "1.2.1": text("authentication.yaml", "anonymous: {enabled: true}"),
    "1.2.28": lambda e: changed(e, Kind.API, lambda _: {"providers": ("identity", "secretbox")}),
    "2.7": certificate(Kind.ETCD, "/etc/etcd/main/pki/ca.crt", support.AUTHORITIES["kubernetes"].certificate),
    "3.1.1": lambda e: e,
    "3.1.2": lambda e: with_objects(e, tokens_of_service_accounts=[{"metadata": {"name": "t", "namespace": "n"}}]),
    "3.1.3": lambda e: with_objects(e, bootstrap_tokens=[{"metadata": {"name": "b", "namespace": "kube-system"}}]),
    "3.2.2": text("audit-policy.yaml", "rules: [{level: None, resources: [{group: '', resources: [secrets]}]}]"),
    "4.3.1": lambda e: with_objects(e, **{"kube-proxy": support.proxy("0.0.0.0:10249")}),
    "5.1.1": bound("*", "*", "cluster-admin"),
    "5.1.2": bound("list", "secrets"),
    "5.1.3": bound("*", "pods"),
    "5.1.4": bound("create", "pods"),
    "5.1.5": bound_subject(kind="ServiceAccount", name="default", namespace="vision"),
    "5.1.6": pods(pod(spec={"volumes": [TOKEN], "serviceAccountName": "own"})),
    "5.1.7": bound_subject(kind="Group", name="system:masters"),
    "5.1.8": bound("impersonate", "users"),
    "5.1.9": bound("create", "persistentvolumes"),
    "5.1.10": bound("get", "nodes/proxy"),
    "5.1.11": bound("update", "*/approval"),
    "5.1.12": bound("patch", "mutatingwebhookconfigurations"),
    "5.1.13": bound("create", "serviceaccounts/token"),
    "5.2.1": namespace("vision", **{"pod-security.kubernetes.io/enforce": "privileged"}),
    "5.2.2": pods(pod(context={"privileged": True})),
    "5.2.3": pods(pod(spec={"hostPID": True})),
    "5.2.4": pods(pod(spec={"hostIPC": True})),
    "5.2.5": pods(pod(spec={"hostNetwork": True})),
    "5.2.6": pods(pod(context={"allowPrivilegeEscalation": True})),
    "5.2.7": pods(pod(context={"runAsNonRoot": None})),
    "5.2.8": pods(pod(context={"capabilities": {"drop": ["SYS_TIME"]}})),
    "5.2.9": pods(pod(context={"capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}})),
    "5.2.10": pods(pod(context={"windowsOptions": {"hostProcess": True}})),
    "5.2.11": pods(pod(spec={"volumes": [{"name": "h", "hostPath": {"path": "/etc"}}]})),
    "5.2.12": pods(pod(ports=[{"containerPort": 80, "hostPort": 8080}])),
    "5.3.1": pods(pod()),
    "5.3.2": namespace("vision"),
    "5.4.1": pods(pod(env=[SECRET_REF])),
    "5.4.2": lambda e: e,
    "5.5.1": lambda e: e,
    "5.6.1": namespace("vision"),
    "5.6.2": pods(pod(context={"seccompProfile": {"type": "Unconfined"}})),
    "5.6.3": pods({"metadata": {"name": "p", "namespace": "vision"}, "spec": {"containers": [{"name": "c"}]}}),
    "5.6.4": pods(pod("default")),
    "M.1": wider(Kind.WORKER, "/etc/kubernetes/kubelet.conf", secret=True),
    "M.2": wider(Kind.API, "/var/lib/cloud/instances/i-1/user-data.txt"),
    "M.3": certificate(Kind.WORKER, "/var/lib/kubelet/pki/kubelet-client-current.pem", SHORT),
    "M.4": certificate(Kind.ETCD, "/etc/etcd/events/pki/peer.crt", OF_MAIN),
    "M.11": lambda e: changed(e, Kind.ETCD, lambda _: {"listening": (Socket(address="0.0.0.0", port=2383),)}),
    "M.23": lambda e: replace(e, audit_logs=replace(LOGS, newest={"api-1": support.NOW - 601})),
    "M.24": lambda e: replace(e, audit_logs=replace(LOGS, locked_days=29)),
    "M.25": pods(pod("csi", image="registry.example.org/driver:v1")),
    "M.28": lambda e: with_objects(e, API_services=[api_service(insecureSkipTLSVerify=True)]),
    "M.16": certificate(
        Kind.API, "/etc/kubernetes/pki/kubelet-serving-ca.crt", support.AUTHORITIES["kubernetes"].certificate
    ),
    "M.17": lambda e: with_objects(e, serving_requests=[support.serving_request("region-1", "10.77.0.131")]),
    "M.21": namespace("user-ana", **{"menagerie.dev/tenant": "person"}),
    "M.22": lambda e: with_objects(e, gangs=[gang("2026-11-01T00:00:00Z")]),
    "M.12": lambda e: changed(e, Kind.ETCD, lambda _: {"versions": {"etcd": "etcd Version: 3.6.13"}}),
    "M.14": auto_approved("system:bootstrappers:kubeadm:default-node-token"),
    "M.15": join_token(),
    "M.18": nodes(node("worker-1", **{places.RACK: "r9"})),
    "M.19": on_a_node(pod(CONTROLLERS_NAMESPACE, {"nodeName": "gpu-1"}), node("gpu-1", **{TRUSTED_POOL: "gpu"})),
    "M.20": pods(pod(spec={"priorityClassName": "system-node-critical"})),
}


@pytest.mark.parametrize("id_", [control.id for control in controls() if control.by])
def test_violations_that_need_more_than_a_comparison_are_found(id_: str, good: Evidence) -> None:
    spoil = SPOILED.get(id_) or (lambda e: attempted(e, id_, False))
    assert (id_ in SPOILED) is (BY_ID[id_].by != ATTEMPTS)
    expect_broken(BY_ID[id_], spoil(good))


def test_an_aggregated_api_needs_a_ca_bundle_and_one_of_the_api_server_none(good: Evidence) -> None:
    own: Mapping[str, Any] = {"metadata": {"name": "v1.apps"}, "spec": {"groupPriorityMinimum": 17800}}

    def status(*services: Mapping[str, Any]) -> Status:
        return decided(BY_ID["M.28"], with_objects(good, API_services=services)).status

    assert status(own, api_service(caBundle="LS0t")) is Status.PASS
    assert status(own, api_service()) is Status.FAIL


@pytest.mark.parametrize("id_", ["M.23", "M.24"])
def test_an_unreachable_bucket_of_audit_logs_is_never_a_pass(id_: str, good: Evidence) -> None:
    assert decided(BY_ID[id_], good).status is Status.PASS
    assert decided(BY_ID[id_], replace(good, audit_logs="no answer")).status is Status.NOT_SEEN


def test_an_api_server_without_objects_in_the_bucket_is_found(good: Evidence) -> None:
    others = replace(good, audit_logs=replace(LOGS, newest={"api-2": support.NOW}))
    assert expect_broken(BY_ID["M.23"], others) == "api-1: the bucket has no objects of it"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("system:bootstrappers", Status.FAIL),
        ("system:authenticated", Status.FAIL),
        ("system:nodes", Status.PASS),
        ("kubeadm:cluster-admins", Status.PASS),
    ],
)
def test_groups_without_bootstrap_tokens_may_have_certificates_approved(
    good: Evidence, subject: str, expected: Status
) -> None:
    assert decided(BY_ID["M.14"], auto_approved(subject)(good)).status is expected


@pytest.mark.parametrize(
    ("age_s", "labels", "expected"),
    [
        (3000, {JOIN_TOKEN_FOR: "worker-1"}, Status.PASS),
        (3000, {JOIN_TOKEN_FOR: IN_REGION}, Status.PASS),
        (3000, {"app": "by-hand"}, Status.FAIL),
        (4000, {JOIN_TOKEN_FOR: "worker-1"}, Status.FAIL),
    ],
    ids=["of a host", "of the region", "of any node", "older than an hour"],
)
def test_a_token_is_valid_for_one_node_and_one_hour(
    good: Evidence, age_s: float, labels: Mapping[str, str], expected: Status
) -> None:
    assert decided(BY_ID["M.15"], join_token(age_s, **labels)(good)).status is expected


@pytest.mark.parametrize("id_", support.METHODS)
def test_an_inconclusive_attempt_counts_as_not_seen(id_: str, good: Evidence) -> None:
    assert decided(BY_ID[id_], attempted(good, id_, None)).status is Status.NOT_SEEN


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.id)
def test_an_unreachable_host_is_never_a_pass(control: Control, good: Evidence) -> None:
    silent = tuple(Unseen(kind, f"{kind}-9", "down") for kind in Kind)
    result = decided(control, replace(good, unseen=silent))
    of_hosts = control.hosts and not control.kubelet
    everywhere = control.id in ("M.1", "M.2", "M.3", "M.4", "M.11")
    about = [finding.subject for finding in result.findings if finding.observed == "down"]
    assert bool(about) is bool(of_hosts or everywhere)
    assert result.status is not Status.PASS or not about


def test_a_failure_is_reported_even_if_another_host_is_unreachable(good: Evidence) -> None:
    spoiled = wider(Kind.WORKER, "/etc/kubernetes/kubelet.conf")(good)
    result = decided(BY_ID["4.1.5"], replace(spoiled, unseen=(Unseen(Kind.WORKER, "worker-9", "down"),)))
    assert result.status is Status.FAIL
    assert result.observed == "worker-1: /etc/kubernetes/kubelet.conf is 0640 root:root"


def test_only_the_violated_control_fails(good: Evidence) -> None:
    """(For a kubelet's kubeconfig, our own control of files with keys would fail as well.)"""
    spoiled = wider(Kind.WORKER, "/var/lib/kubelet/config.yaml")(good)
    broken = [each.id for each in controls() if decided(each, spoiled).status is Status.FAIL]
    assert broken == ["4.1.9"]


def test_two_etcds_on_one_host_are_checked_separately(good: Evidence) -> None:
    main, events = good.of(Kind.ETCD)
    both = main.model_copy(
        update={
            "processes": main.processes + events.processes,
            "files": {**main.files, **events.files, "/var/lib/etcd/events": folder("etcd:etcd", "0755")},
        }
    )
    shared = replace(good, reports=(*good.of(Kind.API), both))
    assert decided(BY_ID["1.1.11"], shared).observed == "etcd-main-1: /var/lib/etcd/events is 0755 etcd:etcd"
    findings = decided(BY_ID["2.2"], shared).findings
    assert [finding.subject for finding in findings] == ["etcd-main-1", "etcd-events-1"]


def test_our_pods_and_rights_of_kubernetes_are_not_reported(good: Evidence) -> None:
    own = {
        "metadata": {"name": "system:x"},
        "roleRef": {"kind": "ClusterRole", "name": "theirs"},
        "subjects": [{"kind": "User", "name": "u"}],
    }
    rules = [{"verbs": ["*"], "resources": ["*"]}]
    evidence = with_objects(
        good,
        pods=[pod("kube-system", {"hostNetwork": True}), pod("csi", context={"privileged": True})],
        cluster_role_bindings=[own],
        cluster_roles=[
            {"metadata": {"name": "theirs", "labels": {"kubernetes.io/bootstrapping": "x"}}, "rules": rules}
        ],
    )
    statuses = {id_: decided(BY_ID[id_], evidence).status for id_ in ("5.1.2", "5.1.3", "5.2.2", "5.2.5")}
    assert set(statuses.values()) == {Status.PASS}


def test_a_binding_in_a_namespace_grants_the_role_of_that_namespace(good: Evidence) -> None:
    def binding(space: str) -> Mapping[str, Any]:
        return {
            "metadata": {"name": "b", "namespace": space},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": space}],
        }

    rule = {"verbs": ["get"], "resources": ["secrets"]}
    roles = [{"metadata": {"name": "r", "namespace": "a"}, "rules": [rule]}]
    findings = decided(
        BY_ID["5.1.2"], with_objects(good, roles=roles, role_bindings=[binding("a"), binding("b")])
    ).findings
    assert [finding.subject for finding in findings] == ["User a"]


NODE_LABELS = {
    "as in the spec": ("worker-1", {}, ""),
    "with labels of others": ("worker-1", {"kubernetes.io/os": "linux", "openai.com/team": "vision"}, ""),
    "of another rack": ("worker-1", {places.RACK: "r9"}, f"{places.RACK} is r9, not r1"),
    "of a pool of the region": ("worker-1", {POOL_LABEL: "cpu"}, f"{POOL_LABEL} isn't in the spec"),
    "a false storage host": ("worker-1", {places.STORAGE_HOST: "true"}, "isn't in the spec"),
    "a worker of the region": ("cloud-1", {POOL_LABEL: "cpu", TRUSTED_POOL: "cpu"}, ""),
    "a worker that came back in another pool": (
        "cloud-1",
        {POOL_LABEL: "cpu"},
        "it reports pool cpu, but was first seen in none",
    ),
    "a worker of the region in a rack": (
        "cloud-1",
        {places.RACK: "r1"},
        f"{places.RACK} is only for machines at sites",
    ),
}


@pytest.mark.parametrize("what", NODE_LABELS)
def test_a_node_with_a_wrong_label_is_reported(what: str, good: Evidence) -> None:
    name, labels, expected = NODE_LABELS[what]
    own = good.labels["worker-1"] if name == "worker-1" else {}
    result = decided(BY_ID["M.18"], nodes(node(name, **{**own, **labels}))(good))
    assert (result.status, expected in result.observed) == (Status.FAIL if expected else Status.PASS, True), (
        result.observed
    )


def test_controllers_on_their_pool_and_system_pods_pass(good: Evidence) -> None:
    spec = {"nodeName": "cpu-1", "priorityClassName": "system-cluster-critical", "serviceAccountName": "ebs-controller"}
    listed = [pod(CONTROLLERS_NAMESPACE, spec), pod("csi", spec), pod("monitoring", spec)]
    free = [{"metadata": {"name": "monitoring", "labels": {SYSTEM_LABEL: "true"}}}]
    evidence = with_objects(good, pods=listed, namespaces=free, nodes=[node("cpu-1", **{TRUSTED_POOL: "workers"})])
    assert {decided(BY_ID[each], evidence).status for each in ("M.19", "M.20")} == {Status.PASS}
    # A plugin for volumes runs on every node.
    plugin = pod("csi", {"nodeName": "gpu-1", "serviceAccountName": "ebs-node"})
    elsewhere = with_objects(evidence, pods=[plugin], nodes=[node("gpu-1")])
    assert decided(BY_ID["M.19"], elsewhere).status is Status.PASS


def test_images_of_a_lab_may_have_tags_and_are_reported_as_built_here(good: Evidence) -> None:
    evidence = replace(pods(pod("kube-system", image="registry.k8s.io/kube-proxy:v1"))(good), lab=True)
    result = decided(BY_ID["M.25"], evidence)
    assert (result.status, "built on this machine" in result.observed) == (Status.PASS, True)


def test_images_of_users_may_have_tags(good: Evidence) -> None:
    assert decided(BY_ID["M.25"], pods(pod("vision", image="registry.example.org/train:1"))(good)).status is Status.PASS


@pytest.mark.parametrize(
    ("request_", "ok"),
    [
        (support.serving_request("worker-1", "10.78.1.11"), True),
        (support.serving_request("worker-1", "10.78.1.12"), False),
        (support.serving_request("region-1", "10.77.0.130"), True),
        (support.serving_request("region-1", "10.77.0.130", "10.78.1.11"), False),
        (support.serving_request("nobody-s", "10.77.0.140"), False),
    ],
)
def test_a_serving_certificate_is_only_valid_for_its_node_s_address(
    good: Evidence, request_: Mapping[str, Any], ok: bool
) -> None:
    findings = decided(BY_ID["M.17"], with_objects(good, serving_requests=[request_])).findings
    assert [each.ok for each in findings if each.subject == request_["metadata"]["name"]] == [ok]


def test_a_worker_with_its_neighbour_s_address_in_its_certificate_is_found(good: Evidence) -> None:
    other = support.serving("worker-1", "10.78.1.11", "10.78.1.12").certificate
    result = decided(BY_ID["M.17"], certificate(Kind.WORKER, SERVING, other)(good))
    assert (result.status, result.observed) == (Status.FAIL, "worker-1: of worker-1, for 10.78.1.12")


def test_a_cluster_without_addresses_of_its_machines_never_passes(good: Evidence) -> None:
    evidence = with_objects(good, addresses_of_nodes=[{"metadata": {"name": "hosts"}}])
    assert decided(BY_ID["M.17"], evidence).status is Status.NOT_SEEN


def test_a_namespace_with_a_count_for_every_kind_passes(good: Evidence) -> None:
    """Short names count too. A missing kind is named."""
    labels = {"menagerie.dev/tenant": "team"}
    hard = {name.replace("count/secrets", "secrets"): "1" for name in counts.TEAMS}

    def outcome(own: Mapping[str, str]) -> tuple[Status, str]:
        quota = {"metadata": {"name": "menagerie", "namespace": "team-a"}, "spec": {"hard": own}}
        result = decided(BY_ID["M.21"], with_objects(namespace("team-a", **labels)(good), resource_quotas=[quota]))
        return result.status, result.observed

    assert outcome(hard)[0] is Status.PASS
    less = {name: value for name, value in hard.items() if name != "count/configmaps"}
    assert outcome(less) == (Status.FAIL, "namespace team-a: no limit for count/configmaps")


def test_gangs_that_have_a_group_are_finished_or_are_new_pass(good: Evidence) -> None:
    old, young = "2026-11-01T00:00:00Z", datetime.fromtimestamp(good.now - 60, UTC).isoformat()
    group = {"metadata": {"name": "train", "namespace": "vision"}}
    for gangs, groups in (([gang(old)], [group]), ([gang(old, "Complete")], []), ([gang(young)], [])):
        assert decided(BY_ID["M.22"], with_objects(good, gangs=gangs, pod_groups=groups)).status is Status.PASS
    silent = replace(good, objects={**good.objects, "gangs": (gang(old),), "pod groups": "404 Not Found"})
    assert decided(BY_ID["M.22"], silent).status is Status.NOT_SEEN
    assert decided(BY_ID["M.22"], replace(silent, objects={**silent.objects, "gangs": ()})).status is Status.PASS
