"""Decisions that are made from plain lists of the API: nodes at work, tokens that never expire, authorities in namespaces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cluster.errors import FailedError
from operations.keys import service_account, trusted
from operations.tokens import HEARD, active_nodes
from tests.operations.conftest import FakeAccess, FakeServer, outputs


def stamp(ago: timedelta) -> str:
    return (datetime.now(UTC) - ago).isoformat().replace("+00:00", "Z")


def test_a_node_is_at_work_if_its_kubelet_renewed_its_lease_a_moment_ago(server: FakeServer) -> None:
    renewed = {"a": stamp(timedelta()), "b": stamp(2 * HEARD), "c": None}
    server.answers["/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"] = {
        "items": [{"metadata": {"name": name}, "spec": {"renewTime": at} if at else {}} for name, at in renewed.items()]
    }
    assert active_nodes(FakeAccess(outputs(), server.url).api()) == {"a"}


def test_tokens_in_secrets_that_the_former_key_signed_are_refused(server: FakeServer) -> None:
    made = {"old": "2026-01-01T00:00:00Z", "new": "2026-03-01T00:00:00Z"}
    server.answers["/api/v1/secrets"] = {
        "items": [{"metadata": {"namespace": "x", "name": name, "creationTimestamp": at}} for name, at in made.items()]
    }
    api = FakeAccess(outputs(), server.url).api()
    before = datetime(2026, 2, 1, tzinfo=UTC).timestamp()
    with pytest.raises(FailedError, match="never expire: x/old. Delete"):
        service_account.refuse_endless("lab", api, before)
    service_account.refuse_endless("lab", api, 0)


def test_namespaces_without_the_authorities_are_named_except_those_that_end(server: FakeServer) -> None:
    config = {"metadata": {"resourceVersion": "1"}, "data": {"kubeconfig": "clusters: []"}}
    server.answers |= {
        "/api/v1/namespaces/kube-public/configmaps/cluster-info": config,
        "/api/v1/configmaps": {"items": [{"metadata": {"namespace": "a", "name": trusted.ROOT}, "data": {}}]},
        "/api/v1/namespaces": {
            "items": [
                {"metadata": {"name": "a"}},
                {"metadata": {"name": "b"}},
                {"metadata": {"name": "c", "deletionTimestamp": stamp(timedelta())}},
            ]
        },
    }
    api = FakeAccess(outputs(), server.url).api()
    assert trusted.missing(api, "") == f"{trusted.ROOT} is not up to date in b; the controller manager writes it"
