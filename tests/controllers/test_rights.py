"""What controllers may do on a real API server with their rendered rights: everything in a round, and no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from obstore.store import MemoryStore

from clients.lease import Lease
from cluster.allocations import SYSTEM_LABEL
from cluster.load import load_cluster
from cluster.metering import Metering
from controllers.apply import Controllers
from controllers.bookkeeping import proof
from controllers.bookkeeping.run import Bookkeeper
from controllers.bookkeeping.store import LedgerStore
from controllers.kinds import METERING, TENANCY_CAPACITY, TENANCY_SYNC, ControllerKind
from controllers.manifests import NAMESPACE, Desired
from controllers.metering import journal
from controllers.program.work import TenancyCapacity, TenancySync
from controllers.tenancy.sync.objects import EDITORS, MANAGED_LABEL, MANAGER, OWNER_ROLE, OWNERS
from operations.record.store import RecordStore
from operations.verify.proof import Context
from tests.control_plane.real_api import TOKEN
from tests.controllers.account import APPLY, DIRECTORY, MERGE, Account, token_of
from tests.tenancy.hosts import end, run_on, teams
from tests.tenancy.real import RBAC, Server
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("controllers")

ROBOTICS = "team-robotics"
APPS = "/apis/apps/v1/namespaces"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
def sync(server: Server, spec: Path) -> TenancySync:
    return TenancySync(spec, Path("/nowhere"), Account(server, token_of(server, TENANCY_SYNC)))


def deployment(name: str, image: str = "none", replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
    }


def test_a_second_apply_changes_nothing_and_removal_leaves_no_objects(server: Server, desired: Desired) -> None:
    controllers = Controllers(server.api())
    assert controllers.look(desired) == ()
    assert {state.kind for state in controllers.states()} == set(desired.kinds)
    assert "tenancy-sync has 0 of 2 pods ready" in controllers.missing(desired.kinds)
    controllers.remove(controllers.to_remove(desired.kinds))
    until(lambda: server.real.call("GET", f"/api/v1/namespaces/{NAMESPACE}")[0] == 404)
    left = [
        each["metadata"]["name"]
        for path in (f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings", f"{RBAC}/roles", f"{RBAC}/rolebindings",
                     f"{ADMISSION}/validatingadmissionpolicies", "/apis/coordination.k8s.io/v1/leases")
        for each in server.get(path)["items"]
        if "tenancy-" in each["metadata"]["name"]
    ]  # fmt: skip
    assert left == []
    assert controllers.to_remove(desired.kinds) == ()


def test_manual_changes_and_another_image_are_detected_and_applied(server: Server, desired: Desired) -> None:
    controllers = Controllers(server.api())
    role = f"{RBAC}/clusterroles/menagerie:tenancy-sync"
    everything = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    assert server.real.call("PATCH", role, everything, MERGE)[0] == 200
    other = replace(desired, image="registry.test/menagerie:2")
    changes = controllers.look(other)
    assert {(change.what, change.fields) for change in changes} == {
        ("ClusterRole menagerie:tenancy-sync", ("rules",)),
        (f"Deployment {NAMESPACE}/tenancy-sync", ("spec.template.spec.containers",)),
        (f"Deployment {NAMESPACE}/tenancy-capacity", ("spec.template.spec.containers",)),
        (f"Deployment {NAMESPACE}/metering", ("spec.template.spec.containers",)),
    }
    controllers.apply(other, changes)
    assert controllers.look(other) == ()
    assert "*" not in str(server.get(role)["rules"])


def test_its_account_has_the_rights_for_a_whole_sync(server: Server, spec: Path, sync: TenancySync) -> None:
    first = sync.once(str)
    # Namespaces of three people and a team, each with quota, limits and editors; owners of the team.
    assert (first.failed, first.refused, first.changes) == ((), (), 17)
    assert sync.once(str).changes == 0
    assert server.real.call("POST", f"{APPS}/user-cleo/deployments", deployment("web"))[0] == 201
    cron = {"spec": {"containers": [{"name": "c", "image": "none"}], "restartPolicy": "Never"}}
    job = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": cron}}}
    body = {"metadata": {"name": "yearly"}, "spec": job}
    assert server.real.call("POST", "/apis/batch/v1/namespaces/user-cleo/cronjobs", body)[0] == 201
    # A binding of ours that somebody re-created with another role is deleted and created again.
    path = f"{RBAC}/namespaces/{ROBOTICS}/rolebindings"
    server.real.call("DELETE", f"{path}/{EDITORS}")
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    assert server.real.call("POST", path, {"metadata": {"name": EDITORS}, "roleRef": ref})[0] == 201
    (spec.parent / "people.yaml").write_text(DIRECTORY.replace(", cleo: {}", ""))
    left = sync.once(str)
    assert (left.failed, left.refused) == ((), ())
    stopped = server.get(f"{APPS}/user-cleo/deployments/web")["spec"]["replicas"]
    suspended = server.get("/apis/batch/v1/namespaces/user-cleo/cronjobs/yearly")["spec"]["suspend"]
    assert (stopped, suspended) == (0, True)
    assert server.get(f"{path}/{EDITORS}")["roleRef"]["name"] == "edit"
    (spec.parent / "people.yaml").write_text(DIRECTORY)
    assert sync.once(str).failed == ()
    assert server.get(f"{APPS}/user-cleo/deployments/web")["spec"]["replicas"] == 1
    assert sync.once(str).changes == 0


def test_what_a_controller_writes_itself_is_not_applied_again(
    server: Server, desired: Desired, sync: TenancySync
) -> None:
    assert sync.once(str).failed == ()
    account = Account(server, token_of(server, TENANCY_SYNC))
    with Lease(account.api(), TENANCY_SYNC.lease, "a-pod_1").holding():
        assert Controllers(server.api()).look(desired) == ()


def test_its_account_has_the_rights_for_a_whole_round_of_capacity(
    server: Server, spec: Path, sync: TenancySync
) -> None:
    assert sync.once(str).failed == ()
    own = TenancyCapacity(spec, Path("/nowhere"), Account(server, token_of(server, TENANCY_CAPACITY)))
    moved = own.once(str)
    assert (moved.failed, moved.refused, moved.undecided, moved.changes) == ((), (), (), 1)
    assert sorted(teams(server).values()) == [("", ""), ("", ""), ("robotics", "robotics")]
    assert own.once(str).changes == 0
    text = spec.read_text().replace("hosts: 1\n", "hosts: 2\n")
    spec.write_text(text)
    assert own.once(str).changes == 1
    server.real.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/menagerie-team-pods")
    refused = own.once(str)
    assert (refused.changes, len(refused.failed)) == (0, 1)
    assert refused.failed[0].endswith(f"`menagerie controllers apply {load_cluster(spec).name}` restores it")


def test_its_account_has_the_rights_for_rounds_of_the_ledger(server: Server, spec: Path, sync: TenancySync) -> None:
    """Against a real API server, whose watches and bookmarks the journal relies on; the bucket is in memory."""
    assert sync.once(str).failed == ()
    cluster = load_cluster(spec)
    assert cluster.spec.tenancy
    bucket = RecordStore(MemoryStore(), "memory", shared=True)
    keeper = Bookkeeper(Account(server, token_of(server, METERING)), LedgerStore(bucket), cluster.spec.tenancy)
    first = keeper.once(cluster)
    assert (first.segments, first.sizes["hosts"]) == (1, 3)
    before = first.sizes["pods"]
    run_on(server, "worker-1", "team-robotics", "job")
    time.sleep(1)
    assert keeper.once(cluster).sizes["pods"] == before + 1
    end(server, "team-robotics", "job")
    time.sleep(1)
    assert keeper.once(cluster).sizes["pods"] == before
    whole = [key for key in bucket.keys(journal.PREFIX) if journal.is_whole(key)]
    assert len(whole) == 1, "an event was missed, and everything was listed again"


def test_the_proof_that_its_day_closes_holds_on_a_real_api_server(
    server: Server, spec: Path, sync: TenancySync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's rounds run in a thread with its own account; the proof asks as an administrator."""
    assert sync.once(str).failed == ()
    cluster = load_cluster(spec)
    assert cluster.spec.tenancy
    often = cluster.spec.model_copy(update={"metering": Metering.model_validate({"running_every": "2s"})})
    counted = cluster.model_copy(update={"spec": often})
    store = LedgerStore(RecordStore(MemoryStore(), "memory", shared=True))
    keeper = Bookkeeper(Account(server, token_of(server, METERING)), store, cluster.spec.tenancy)
    over = threading.Event()
    rounds = threading.Thread(target=lambda: [keeper.once(counted) for _ in iter(lambda: over.wait(1), True)])
    monkeypatch.setattr(proof, "ledger_of", lambda _: store)
    rounds.start()
    try:
        nothing: Any = None
        observation = proof.the_day_closes(Context(counted, nothing, server.api(), nothing, None, lambda _: None))
    finally:
        over.set()
        rounds.join()
    assert "the same bytes; its account may not read metrics" in observation


class Try(NamedTuple):
    """A well-formed request, which an administrator may make. what: the attempt in words."""

    what: str
    method: str
    path: str
    body: Any = None
    kind: str = MERGE


def bound(role: str, inside: str, name: str = EDITORS, who: str = "User", id: str = "ana") -> Try:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": who, "name": id}]
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": inside}, "roleRef": ref, "subjects": subjects,
    }  # fmt: skip
    path = f"{RBAC}/namespaces/{inside}/rolebindings/{name}?fieldManager=x&force=true"
    return Try(f"binds {role} in {inside} as {name}", "PATCH", path, body, APPLY)


def free(manager: str, system: str) -> dict[str, Any]:
    return {"metadata": {"name": "free", "labels": {MANAGED_LABEL: manager, SYSTEM_LABEL: system}}}


POD = {
    "metadata": {"name": "p"},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "c",
                "image": "none",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}
POLICY = f"{ADMISSION}/validatingadmissionpolicies/menagerie-tenancy"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/menagerie-tenancy"
TOKEN_BODY = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
BOTH = (
    Try("reads secrets", "GET", "/api/v1/namespaces/kube-system/secrets"),
    Try("reads ConfigMaps of others", "GET", "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt"),
    Try("creates pods", "POST", f"/api/v1/namespaces/{ROBOTICS}/pods", POD, "application/json"),
    Try("creates pods in its own namespace", "POST", f"/api/v1/namespaces/{NAMESPACE}/pods", POD, "application/json"),
    Try("gets another account's token", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/root/token", TOKEN_BODY,
        "application/json"),
    Try("deletes a namespace", "DELETE", f"/api/v1/namespaces/{ROBOTICS}"),
    Try("deletes a node", "DELETE", "/api/v1/nodes/worker-1"),
    Try("changes its own role", "PATCH", f"{RBAC}/clusterroles/menagerie:tenancy-sync", {"rules": []}),
    Try("changes a policy that limits it", "PATCH", f"{POLICY}-sync-tenants", {"spec": {"failurePolicy": "Ignore"}}),
    Try("changes the role of owners", "PATCH", f"{RBAC}/clusterroles/{OWNER_ROLE}", {"rules": []}),
    bound("cluster-admin", "user-bo", OWNERS),
    bound("edit", "kube-system"),
)  # fmt: skip
OF_SYNC = (
    bound("edit", ROBOTICS, "another"),
    bound("edit", ROBOTICS, who="Group", id="system:authenticated"),
    bound("edit", ROBOTICS, id="system:anonymous"),
    Try("makes a namespace a system one", "PATCH", "/api/v1/namespaces/user-bo", {"metadata": {"labels": {SYSTEM_LABEL: "true"}}}),
    Try("creates a system namespace", "POST", "/api/v1/namespaces", free(MANAGER, "true"), "application/json"),
    Try("creates a namespace of no tenant", "POST", "/api/v1/namespaces", free("x", ""), "application/json"),
    bound("admin", "user-bo", OWNERS),
    Try("labels kube-system", "PATCH", "/api/v1/namespaces/kube-system", {"metadata": {"labels": {"a": "b"}}}),
    Try("changes an image", "PATCH", f"{APPS}/{ROBOTICS}/deployments/web", deployment("web", "another")),
    Try("scales a system workload down", "PATCH", f"{APPS}/kube-system/deployments/web", {"spec": {"replicas": 0}}),
    Try("labels a node", "PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"openai.com/team": "x"}}}),
    Try("takes the other's Lease", "PATCH", f"{LEASES}-capacity", {"metadata": {"labels": {"a": "b"}}}),
    Try("sets a quota in kube-system", "PATCH",
        "/api/v1/namespaces/kube-system/resourcequotas/menagerie?fieldManager=x&force=true",
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "menagerie"}, "spec": {"hard": {"pods": "0"}}},
        APPLY),
)  # fmt: skip
OF_CAPACITY = (
    Try("sets another label", "PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"a": "b"}}}),
    Try("removes a label", "PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"kubernetes.io/hostname": None}}}),
    Try("sets another taint", "PATCH", "/api/v1/nodes/worker-1",
        {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}}),
    Try("cordons", "PATCH", "/api/v1/nodes/worker-1", {"spec": {"unschedulable": True}}),
    Try("deletes pods", "DELETE", f"/api/v1/namespaces/{ROBOTICS}/pods"),
    Try("writes a policy", "PATCH", f"{ADMISSION}/validatingadmissionpolicies/menagerie-team-pods",
        {"spec": {"failurePolicy": "Ignore"}}),
    Try("takes the other's Lease", "PATCH", f"{LEASES}-sync", {"metadata": {"labels": {"a": "b"}}}),
    Try("creates a namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}, "application/json"),
)  # fmt: skip


OF_METERING = (
    Try("creates a namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}, "application/json"),
    Try("labels a node", "PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"openai.com/team": "x"}}}),
    Try("deletes pods", "DELETE", f"/api/v1/namespaces/{ROBOTICS}/pods"),
    Try("takes the other's Lease", "PATCH", f"{LEASES}-sync", {"metadata": {"labels": {"a": "b"}}}),
    Try("reads its own Secret through the API", "GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/ledger"),
)  # fmt: skip


@pytest.fixture
def inhabited(server: Server, sync: TenancySync) -> Iterator[Server]:
    """The API server with the objects that the attempts target."""
    assert sync.once(str).failed == ()
    for inside in (ROBOTICS, "kube-system"):
        assert server.real.call("POST", f"{APPS}/{inside}/deployments", deployment("web", replicas=0))[0] == 201
    server.real.call("POST", "/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "root"}})
    server.real.call("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "kube-root-ca.crt"}})
    yield server
    server.real.call("DELETE", f"{APPS}/kube-system/deployments/web")


@pytest.mark.parametrize(
    ("kind", "tries"),
    [(TENANCY_SYNC, OF_SYNC), (TENANCY_CAPACITY, OF_CAPACITY), (METERING, OF_METERING)],
    ids=["sync", "capacity", "metering"],
)
def test_its_account_may_do_no_more(inhabited: Server, kind: ControllerKind, tries: tuple[Try, ...]) -> None:
    account, administrator = Account(inhabited, token_of(inhabited, kind)), Account(inhabited, TOKEN)
    for attempt in (*BOTH, *tries):
        request = (attempt.method, attempt.path, attempt.body, attempt.kind)
        assert administrator.call(*request) < 300, f"{attempt.what}: {administrator.said}"

        def refused(attempt: Try = attempt, request: tuple[Any, ...] = request) -> bool:
            return account.call(*request) == 403

        # A policy takes effect a moment after its creation.
        until(refused)
    assert account.call("GET", "/api/v1/namespaces", **{"Impersonate-User": "ana"}) == 403
