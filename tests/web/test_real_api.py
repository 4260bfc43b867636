"""A real API server decides who may read: its tokens, its rights, and no more rights for who asks it."""

from __future__ import annotations

import pytest

from controllers.web.guards import ClusterGuard
from tests.controllers.account import Account
from tests.sharing import shared
from tests.tenancy.real import RBAC, serving
from tests.waiting import until
from tests.web.support import app, ask, facts

pytestmark = pytest.mark.xdist_group("controllers")

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def token_of(server, name):
    """Create a ServiceAccount, and return a token of it."""
    server.real.call("POST", ACCOUNTS, {"metadata": {"name": name}})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    status, answer = server.real.call("POST", f"{ACCOUNTS}/{name}/token", body)
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
    for name in ("web", "wall"):
        own.real.call("DELETE", f"{ACCOUNTS}/{name}")


@pytest.fixture
def guarded(server, lab):
    """The pages, behind a guard that has only the rights of Kubernetes' own role for such reviews."""
    own = Account(server, token_of(server, "web"))
    bind(server, "web-0", "system:auth-delegator", kind="ServiceAccount", name="web", namespace="default")
    return app(facts(lab), guard=ClusterGuard(own.api))


def status(guarded, token):
    return ask(guarded, "/", headers=[("Authorization", f"Bearer {token}")])


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
    assert (refused.status, refused.text) == (403, "bo may not list nodes and list pods in the whole cluster\n")


def test_tokens_that_the_api_server_does_not_know_are_401(guarded):
    # Until the binding works, a review is refused, and nobody is let in.
    until(lambda: status(guarded, "unknown").status != 503, every_s=1)
    assert status(guarded, "another").status == 401


def test_a_guard_without_the_right_to_ask_lets_nobody_in(server, lab):
    without = Account(server, token_of(server, "wall"))
    answer = status(app(facts(lab), guard=ClusterGuard(without.api)), "token-of-ana")
    assert (answer.status, "ana" in answer.text) == (503, False)
