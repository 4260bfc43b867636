"""What `status` says about nodes without metrics: a request for a certificate that nobody approved, or their kubelet's age."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes import client

from cluster.spec import Cluster
from operations.status import model
from operations.status.metrics import ASKED, NODES, YOUNG_S, metrics
from operations.status.model import StatusItem
from tests.operations.conftest import FakeServer

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}


def nodes(*names: str, ready: bool = True) -> list[client.V1Node]:
    condition = client.V1NodeCondition(type="Ready", status=str(ready))
    status = client.V1NodeStatus(conditions=[condition])
    return [client.V1Node(metadata=client.V1ObjectMeta(name=name), status=status) for name in names]


def request(name: str, node: str, at: str = "2026-11-27T10:00:00Z", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": at}
    return {"metadata": metadata, "spec": {"username": f"system:node:{node}"}, "status": status}


class Api:
    """A cluster's API with prepared answers. measured: nodes with metrics. requests: those of kubelets."""

    def __init__(self, server: FakeServer, cluster: Cluster) -> None:
        self.server, self.cluster = server, cluster
        server.answers[REQUESTS] = {"items": []}

    def runs(self, node: str, seconds: float) -> None:
        """Let a kubelet answer that it has run for so long."""
        text = f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {time.time() - seconds:.2f}\n"
        self.server.answers[f"/api/v1/nodes/{node}/proxy/metrics"] = f"go_goroutines 9\n{text}"

    def items(self, listed: list[client.V1Node], *measured: str, requests: Any = ()) -> list[StatusItem]:
        self.server.answers[NODES] = {"items": [{"metadata": {"name": name}} for name in measured]}
        self.server.answers[REQUESTS] = {"items": list(requests)}
        configuration = client.Configuration(host=self.server.url)
        configuration.retries = False
        return list(metrics(self.cluster, client.ApiClient(configuration), listed))

    def asked(self) -> list[str]:
        return sorted(path.split("/")[4] for path in self.server.asked if path.endswith("/proxy/metrics"))


@pytest.fixture
def api(server: FakeServer, lab: Cluster) -> Api:
    return Api(server, lab)


def wrong(items: list[StatusItem]) -> dict[str, str]:
    return {item.name: item.detail for item in items if not item.ok}


def test_nodes_with_metrics_are_one_line_and_no_kubelet_is_asked(api: Api) -> None:
    (item,) = api.items(nodes("a", "b"), "a", "b")
    assert (item.ok, item.detail) == (True, "2 of 2 Ready nodes have metrics")
    assert api.asked() == []


def test_a_node_that_is_not_ready_has_a_line_of_its_own_elsewhere(api: Api) -> None:
    (item,) = api.items([*nodes("a"), *nodes("b", ready=False)], "a")
    assert item.detail == "1 of 1 Ready nodes have metrics"


def test_an_unapproved_request_of_a_node_without_metrics_is_named_with_the_way_out(api: Api) -> None:
    items = api.items(nodes("a", "b"), "a", requests=[request("csr-1", "b")])
    assert wrong(items) == {
        "b": "has no metrics: a request of its kubelet for a serving certificate is not approved: csr-1"
    }
    assert "When a request stays pending" in items[-1].help
    assert items[0].detail == "1 of 2 Ready nodes have metrics"
    assert api.asked() == []


def test_a_request_that_was_just_made_is_no_problem_yet(api: Api) -> None:
    """The approver waits for the addresses of a Node that joins."""
    just_now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    (item,) = api.items(nodes("a", "b"), "a", requests=[request("csr-1", "b", just_now)])
    assert item.detail == "1 of 2 Ready nodes have metrics; b: the kubelet started less than 90 s ago, or joins"
    assert api.asked() == []


def test_decided_requests_are_no_reason(api: Api) -> None:
    api.runs("b", 3600)
    decided = [request("csr-1", "b", **APPROVED), request("csr-2", "b", certificate="LS0t")]
    items = api.items(nodes("a", "b"), "a", requests=decided)
    assert wrong(items) == {"b": "has no metrics: its kubelet answers API servers, and has run for 60 min"}


def test_one_pending_request_of_a_node_with_metrics_is_nothing(api: Api) -> None:
    """It was refused, or it is one too many: the node works."""
    assert wrong(api.items(nodes("a"), "a", requests=[request("csr-1", "a")])) == {}


def test_from_its_second_pending_request_a_node_with_metrics_is_named(api: Api) -> None:
    twice = [request("csr-2", "a", "2026-11-27T10:15:00Z"), request("csr-1", "a"), request("csr-3", "gone")]
    assert wrong(api.items(nodes("a"), "a", requests=[*twice, request("csr-4", "gone")])) == {
        "a": "has metrics until its certificate ends: 2 requests of its kubelet for a serving certificate are not approved: "
        "csr-1, csr-2"
    }


def test_many_requests_of_one_node_are_counted(api: Api) -> None:
    many = [request(f"csr-{number}", "a", f"2026-11-27T10:{number}0:00Z") for number in range(1, 6)]
    (text,) = wrong(api.items(nodes("a"), requests=many)).values()
    assert text.endswith("5 requests of its kubelet for a serving certificate are not approved: csr-1, csr-2, csr-3 …")


def test_a_young_kubelet_is_no_problem(api: Api) -> None:
    api.runs("b", YOUNG_S - 10)
    (item,) = api.items(nodes("a", "b"), "a")
    assert item.ok
    assert item.detail == "1 of 2 Ready nodes have metrics; b: the kubelet started less than 90 s ago, or joins"


def test_an_older_kubelet_without_metrics_is_named(api: Api) -> None:
    api.runs("b", YOUNG_S + 10)
    assert wrong(api.items(nodes("a", "b"), "a")) == {
        "b": "has no metrics: its kubelet answers API servers, and has run for 2 min"
    }


def test_a_kubelet_that_does_not_answer_is_named(api: Api) -> None:
    assert wrong(api.items(nodes("a", "b"), "a")) == {
        "b": "has no metrics: its kubelet does not answer (404 Not Found)"
    }


def test_at_most_five_kubelets_are_asked_and_the_others_are_named_too(api: Api) -> None:
    names = [f"n{number}" for number in range(7)]
    for name in names:
        api.runs(name, 600)
    problems = wrong(api.items(nodes(*names)))
    assert api.asked() == names[:ASKED]
    assert list(problems) == names
    assert problems["n6"] == "has no metrics: not asked, as 5 others were"


def test_an_api_without_metrics_is_a_line_and_nothing_else_is_asked(api: Api, server: FakeServer) -> None:
    configuration = client.Configuration(host=server.url)
    (item,) = metrics(api.cluster, client.ApiClient(configuration), nodes("a"))
    assert (item.name, item.ok, item.detail) == ("API", False, "metrics.k8s.io answers 404 Not Found")
    assert "get apiservice v1beta1.metrics.k8s.io" in item.help
    assert server.asked == [NODES]


def test_a_silent_api_of_metrics_is_a_line_and_the_rest_of_status_goes_on(
    api: Api, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "ANSWER_S", 0.2)
    server.silent.set()
    configuration = client.Configuration(host=server.url)
    configuration.retries = False
    (item,) = metrics(api.cluster, client.ApiClient(configuration), nodes("a"))
    assert (item.name, item.ok, item.detail) == ("API", False, "metrics.k8s.io does not answer in 0 s")
    assert "get apiservice v1beta1.metrics.k8s.io" in item.help
