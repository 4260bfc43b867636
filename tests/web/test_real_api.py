"""A real API server decides who may read: its tokens, its rights, and no more rights for who asks it."""

from __future__ import annotations

import json

import pytest

from cluster.tenancy import DirectorySource, Tenancy
from controllers.tenancy.sync.objects import EDIT, EDITORS, OWNER_ROLE, OWNERS, binding, cluster_role
from controllers.web.guards import ClusterGuard
from tests.controllers.account import Account
from tests.sharing import shared
from tests.tenancy.real import RBAC, serving
from tests.waiting import until
from tests.web.bills import YESTERDAY, kept
from tests.web.support import app, ask, facts, read

pytestmark = pytest.mark.xdist_group("controllers")

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
SPACE = "team-vision"


def token_of(server, name):
    """Create a ServiceAccount, and return a token of it."""
    server.real.call("POST", ACCOUNTS, {"metadata": {"name": name}})
    status, answer = server.real.call("POST", f"{ACCOUNTS}/{name}/token", TOKEN_REQUEST)
    assert status == 201, answer
    return answer["status"]["token"]


def bind(server, binding, role, **subject):
    body = {
        "metadata": {"name": binding},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    status, answer = server.real.call("POST", f"{RBAC}/clusterrolebindings", body)
    assert status == 201, answer


@pytest.fixture
def server(tmp_path_factory):
    """Yield the server, without what these tests create in it."""
    own = shared("controllers", lambda: serving(tmp_path_factory.mktemp("controllers")))
    yield own
    for path in (f"{RBAC}/clusterroles/web-reader", *(f"{RBAC}/clusterrolebindings/web-{n}" for n in range(3))):
        own.real.call("DELETE", path)
    own.real.call("DELETE", f"{RBAC}/clusterroles/{OWNER_ROLE}")
    own.real.call("DELETE", f"/api/v1/namespaces/{SPACE}")
    until(lambda: own.real.call("GET", f"/api/v1/namespaces/{SPACE}")[0] == 404)
    for name in ("web", "wall"):
        own.real.call("DELETE", f"{ACCOUNTS}/{name}")


@pytest.fixture
def guarded(server, lab):
    """The pages, behind a guard that has only the rights of Kubernetes' own role for such reviews."""
    own = Account(server, token_of(server, "web"))
    bind(server, "web-0", "system:auth-delegator", kind="ServiceAccount", name="web", namespace="default")
    teams = {"robotics": "team-robotics", "vision": SPACE}
    return app(facts(lab, bills=read(kept("lab"))), guard=ClusterGuard(own.api, teams=lambda: teams))


def status(guarded, token, path="/"):
    return ask(guarded, path, headers=[("Authorization", f"Bearer {token}")])


def test_who_may_list_nodes_and_pods_reads_and_others_learn_what_they_lack(server, guarded):
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
    assert (
        server.real.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "web-reader"}, "rules": rules})[0] == 201
    )
    bind(server, "web-1", "web-reader", kind="User", name="ana")
    bind(server, "web-2", "web-reader", kind="ServiceAccount", name="wall", namespace="default")
    # The authorizer's caches follow a moment later.
    until(lambda: server.as_("ana", "GET", "/api/v1/pods") == server.as_("ana", "GET", "/api/v1/nodes") == 200)
    until(lambda: status(guarded, "token-of-ana").status == 200, every_s=1)
    assert status(guarded, token_of(server, "wall")).status == 200
    refused = status(guarded, "token-of-bo")
    assert refused.status == 403
    assert refused.text.startswith("bo may not list nodes and list pods in the whole cluster, nor list pods in the ")


def test_a_member_of_a_team_reads_its_bill_and_an_owner_can_make_a_token_that_does(server, guarded):
    """With the bindings that tenancy makes; the second way is for people who sign in with certificates (docs/how-to/web.md)."""
    assert server.real.call("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})[0] == 201
    assert server.real.call("POST", f"{RBAC}/clusterroles", cluster_role())[0] == 201
    for name, role in ((EDITORS, EDIT), (OWNERS, OWNER_ROLE)):
        bound = binding(SPACE, name, role, ("ana",), Tenancy(directory=DirectorySource()))
        assert server.real.call("POST", f"{RBAC}/namespaces/{SPACE}/rolebindings", bound)[0] == 201
    until(lambda: server.as_("ana", "GET", f"/api/v1/namespaces/{SPACE}/pods") == 200)
    until(lambda: status(guarded, "token-of-ana", "/bill/").status == 200, every_s=1)
    reads_only_visions(guarded, "token-of-ana")
    assert status(guarded, "token-of-bo", f"/bill/{YESTERDAY}/team/vision/").status == 403
    own = f"/api/v1/namespaces/{SPACE}/serviceaccounts"
    assert server.as_("ana", "POST", own, {"metadata": {"name": "bills"}}) == 201, server.said
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subjects = [{"kind": "ServiceAccount", "name": "bills", "namespace": SPACE}]
    body = {"metadata": {"name": "bills"}, "roleRef": ref, "subjects": subjects}
    assert server.as_("ana", "POST", f"{RBAC}/namespaces/{SPACE}/rolebindings", body) == 201, server.said
    assert server.as_("ana", "POST", f"{own}/bills/token", TOKEN_REQUEST) == 201, server.said
    token = json.loads(server.said)["status"]["token"]
    until(lambda: status(guarded, token, "/bill/").status == 200, every_s=1)
    reads_only_visions(guarded, token)


def reads_only_visions(guarded, token):
    mine = status(guarded, token, "/bill/").text
    assert ("of team vision" in mine, "robotics" in mine) == (True, False)
    assert status(guarded, token, f"/bill/{YESTERDAY}/team/robotics/").status == 404
    assert status(guarded, token, "/cluster/lab/").status == 403


def test_tokens_that_the_api_server_does_not_know_are_401(guarded):
    # Until the binding works, a review is refused, and nobody is let in.
    until(lambda: status(guarded, "unknown").status != 503, every_s=1)
    assert status(guarded, "another").status == 401


def test_a_guard_without_the_right_to_ask_lets_nobody_in(server, lab):
    without = Account(server, token_of(server, "wall"))
    answer = status(app(facts(lab), guard=ClusterGuard(without.api)), "token-of-ana")
    assert (answer.status, "ana" in answer.text) == (503, False)
