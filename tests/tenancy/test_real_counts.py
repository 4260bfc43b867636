"""How much of etcd main one person or one team can fill: tried with people's own tokens on a real API server."""

from __future__ import annotations

import pytest

from cluster import counts
from cluster.spec import EtcdCluster
from cluster.tenancy import DirectorySource, PeopleAllowance, Tenancy, amount
from controllers.tenancy.sync.objects import makes
from tests.tenancy.real import RBAC, Server
from tests.tenancy.test_plan import roster
from tests.tenancy.test_real_api import CREATED, FORBIDDEN, OK, config, synced
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy")

SETTINGS = Tenancy(directory=DirectorySource(file="people.yaml"))
QUOTA = EtcdCluster.model_fields["quota"].default
ALL = roster("ana bo", robotics="ana* bo")
OWN = "/api/v1/namespaces/user-ana"
MEBIBYTE = 2**20
WIDGETS = "/apis/example.org/v1/namespaces/user-ana/widgets"


def until_refused(server: Server, person: str, path: str, most: int) -> int:
    """Return how many objects a person can create, trying one more than `most`."""
    for number in range(most + 1):
        if server.as_(person, "POST", path, config(f"c-{number}")) != CREATED:
            return number
    return most + 1


def test_one_person_can_fill_only_a_little_of_etcd_main(server: Server) -> None:
    synced(server, ALL, SETTINGS)
    path, most = f"{OWN}/configmaps", counts.PEOPLE["count/configmaps"]
    assert until_refused(server, "ana", path, most) == most
    assert "exceeded quota: menagerie, requested: count/configmaps=1" in server.said
    # This holds for every kind of object and every namespace.
    for space, kind in (("user-ana", counts.PEOPLE), ("team-robotics", counts.TEAMS)):
        hard = server.get(f"/api/v1/namespaces/{space}/resourcequotas/menagerie")["spec"]["hard"]
        assert hard == {name: str(number) for name, number in kind.items()}
        assert counts.objects(hard) * counts.LARGEST < QUOTA
    assert counts.objects({name: str(number) for name, number in counts.PEOPLE.items()}) * counts.LARGEST * 8 < QUOTA


def test_every_kind_that_people_may_create_is_counted(server: Server) -> None:
    """Read from the API server's own roles, so that a kind added by a new release is noticed."""
    kinds = makes(server.get(f"{RBAC}/clusterroles/edit"))
    assert len(kinds) > 15
    assert set(kinds) <= counts.PEOPLE.keys()
    assert {*kinds, "count/rolebindings.rbac.authorization.k8s.io"} <= counts.TEAMS.keys()


def test_etcd_accepts_no_object_larger_than_the_assumed_size(server: Server) -> None:
    """Try the largest possible object, with annotations, data and owners together."""
    synced(server, ALL, SETTINGS)
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": "x" * 200 + str(number), "uid": "u" * 200, "controller": False}
        for number in range(1600)
    ]
    whole = {**config(), "data": {"x": "x" * (MEBIBYTE - 1)}}
    whole["metadata"] = {"name": "whole", "ownerReferences": owners}
    assert server.as_("ana", "POST", f"{OWN}/configmaps", whole) not in (CREATED, FORBIDDEN)
    whole["metadata"] = {"name": "whole", "ownerReferences": owners[:900]}
    assert server.as_("ana", "POST", f"{OWN}/configmaps", whole) == CREATED


def test_a_namespace_above_its_quota_keeps_its_objects(server: Server) -> None:
    """A cluster from before counts existed."""
    synced(
        server,
        ALL,
        SETTINGS.model_copy(update={"people": PeopleAllowance.model_validate({"quota": {"count/configmaps": 90}})}),
    )
    for number in range(60):
        assert server.as_("ana", "POST", f"{OWN}/configmaps", config(f"c-{number}")) == CREATED
    _, applied = server.sync(ALL, SETTINGS)
    assert applied.failed == ()
    until(lambda: server.as_("ana", "POST", f"{OWN}/configmaps?dryRun=All", config("new")) == FORBIDDEN)
    assert len(server.get(f"{OWN}/configmaps")["items"]) == 60
    assert server.as_("ana", "PATCH", f"{OWN}/configmaps/c-1", {"data": {"a": "b"}}) == OK
    notices = server.sync(ALL, SETTINGS)[0].plan.notices
    assert [text for text in notices if "user-ana uses 60 of count/configmaps, and its quota is 50" in text]
    for number in range(11):
        assert server.as_("ana", "DELETE", f"{OWN}/configmaps/c-{number}") == OK
    until(lambda: server.as_("ana", "POST", f"{OWN}/configmaps", config("new")) == CREATED)


def test_a_kind_from_a_crd_that_people_may_create_is_also_counted(server: Server) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }  # fmt: skip
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
        "rules": [{"apiGroups": ["example.org"], "resources": ["widgets", "widgets/status"], "verbs": ["*"]}],
    }  # fmt: skip
    try:
        assert server.real.call("POST", crds, crd)[0] == CREATED
        assert server.real.call("POST", f"{RBAC}/clusterroles", role)[0] == CREATED
        until(lambda: "example.org" in str(server.get(f"{RBAC}/clusterroles/edit")["rules"]))
        server.sync(ALL, SETTINGS)
        hard = server.get(f"{OWN}/resourcequotas/menagerie")["spec"]["hard"]
        assert hard["count/widgets.example.org"] == str(counts.OTHERS["people"])
        assert server.sync(ALL, SETTINGS)[0].plan.changes == ()

        def refused() -> bool:
            """Whether the quota refuses a widget. Until the quota controller knows the kind, the API server refuses all widgets."""
            body = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"generateName": "w-"}}
            return server.as_("ana", "POST", WIDGETS, body) == FORBIDDEN and "count/widgets.example.org" in server.said

        until(refused)
        assert len(server.get(WIDGETS)["items"]) <= amount(hard["count/widgets.example.org"])
    finally:
        server.real.call("DELETE", f"{RBAC}/clusterroles/widgets")
        server.real.call("DELETE", f"{crds}/widgets.example.org")
