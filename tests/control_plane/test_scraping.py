"""Where the scraper finds API servers: EndpointSlices that hosts write into a real API, with the rights of metrics-keys."""

from __future__ import annotations

import http
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.spec import Cluster
from components.control_plane import metrics_keys, metrics_relay, scraper
from components.control_plane.host import scraping
from components.control_plane.host.api import Api, ApiError
from components.control_plane.objects import applied
from tests.control_plane.real_api import TOKEN, RealApi, plain
from tests.sharing import shared
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("plain_api")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PORT = 2396


class AsProgram:
    """`components.control_plane.host.api.Api` of a host, on the real API of the test, with the rights of metrics-keys."""

    apply = Api.apply

    def __init__(self, api: RealApi, address: str) -> None:
        self._api, self.host = api, address

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self._api.call(method, path, body, kind, as_user=metrics_keys.USER)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, answer["message"])
        return answer


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory, lab: Cluster) -> Iterator[RealApi]:
    ready = shared("api", lambda: plain(tmp_path_factory.mktemp("api")))
    for thing in (*scraper.objects(), *metrics_keys.objects(), *metrics_relay.objects()):
        status, message = ready.apply(applied(thing))
        assert status in (200, 201), message
    ready.call("DELETE", scraping.SLICES)
    # The authorizer reads roles from a watch, which may be later than the answer to a write.
    for path in (scraping.SLICES, scraping.LEASES):
        until(lambda path=path: ready.call("GET", path, as_user=metrics_keys.USER)[0] == http.HTTPStatus.OK)
    yield ready
    for name in ("api-1", "api-2"):
        ready.call("DELETE", f"{LEASES}/of-{name}")
    ready.call("DELETE", scraping.SLICES)


def alive(api: RealApi, host: str) -> None:
    """Give a host's API server a lease, as it does itself."""
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host}
    lease = {"metadata": {"name": f"of-{host.lower()}", "labels": labels}, "spec": {"holderIdentity": host}}
    assert api.call("POST", LEASES, lease)[0] == http.HTTPStatus.CREATED


def gone(api: RealApi, host: str) -> None:
    """Remove a lease, as API servers do an hour after its last renewal."""
    assert api.call("DELETE", f"{LEASES}/of-{host.lower()}")[0] == http.HTTPStatus.OK


def host(api: RealApi, name: str, address: str) -> scraping.Addresses:
    return scraping.Addresses(AsProgram(api, address), name, PORT)  # type: ignore[arg-type]


def addresses(api: RealApi) -> dict[str, list[str]]:
    """Return host -> addresses with ports, as a scraper reads them."""
    status, listed = api.call("GET", scraping.SLICES)
    assert status == http.HTTPStatus.OK
    return {
        each["metadata"]["labels"]["kubernetes.io/hostname"]: [
            f"{address}:{each['ports'][0]['port']}" for end in each["endpoints"] for address in end["addresses"]
        ]
        for each in listed["items"]
    }


def test_each_host_writes_its_own_address_once(api: RealApi, capsys: pytest.CaptureFixture[str]) -> None:
    alive(api, "api-1")
    alive(api, "api-2")
    one, two = host(api, "api-1", "10.0.0.11"), host(api, "api-2", "10.0.0.12")
    for each in (one, two, one, two):
        each.look()
    assert addresses(api) == {"api-1": ["10.0.0.11:2396"], "api-2": ["10.0.0.12:2396"]}
    assert capsys.readouterr().out.count(": written") == 2


def test_a_host_without_a_lease_writes_nothing_because_others_would_remove_it(api: RealApi) -> None:
    own = host(api, "api-1", "10.0.0.11")
    own.look()
    assert addresses(api) == {}
    alive(api, "api-1")
    own.look()
    assert addresses(api) == {"api-1": ["10.0.0.11:2396"]}


def test_a_host_that_stops_removes_its_address_at_once(api: RealApi, capsys: pytest.CaptureFixture[str]) -> None:
    alive(api, "api-1")
    own = host(api, "api-1", "10.0.0.11")
    own.look()
    own.leave()
    assert addresses(api) == {}
    own.leave()
    assert "removed" in capsys.readouterr().out


def test_the_address_of_a_host_that_died_goes_with_its_lease(api: RealApi) -> None:
    alive(api, "api-1")
    alive(api, "api-2")
    live, dead = host(api, "api-1", "10.0.0.11"), host(api, "api-2", "10.0.0.12")
    dead.look()
    live.look()
    assert set(addresses(api)) == {"api-1", "api-2"}
    gone(api, "api-2")
    live.look()
    assert set(addresses(api)) == {"api-1"}


def test_a_host_of_the_same_name_with_another_address_replaces_the_former(api: RealApi) -> None:
    alive(api, "api-1")
    host(api, "api-1", "10.0.0.11").look()
    host(api, "api-1", "10.0.0.99").look()
    assert addresses(api) == {"api-1": ["10.0.0.99:2396"]}


def test_a_name_with_capital_letters_as_azure_gives_them_is_kept_apart(api: RealApi) -> None:
    alive(api, "api-1")
    gone(api, "api-1")
    alive(api, "API00000A")
    try:
        host(api, "API00000A", "10.0.0.13").look()
        assert addresses(api) == {"API00000A": ["10.0.0.13:2396"]}
    finally:
        gone(api, "API00000A")


def status(api: RealApi, path: str, user: str) -> int:
    """Return the status of GET, whose answer need not be JSON, as a user."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Impersonate-User": user}
    return api.line.ask("GET", path, headers=headers)[0]


@pytest.mark.parametrize("user", [metrics_relay.USER, scraper.USER])
def test_the_relay_and_the_scraper_read_metrics_and_nothing_else(api: RealApi, user: str) -> None:
    until(lambda: status(api, "/metrics", user) == http.HTTPStatus.OK)
    for path in ("/metrics/slis", "/metrics/cadvisor", "/logs", "/debug/pprof/", "/api/v1/nodes", "/api/v1/pods"):
        assert status(api, path, user) == http.HTTPStatus.FORBIDDEN, path
    assert status(api, f"/api/v1/namespaces/{scraping.NAMESPACE}/secrets", user) == http.HTTPStatus.FORBIDDEN


def test_of_a_kubelet_the_scraper_may_read_metrics_alone(api: RealApi) -> None:
    """A kubelet asks the API server about the subresource that belongs to the path (pkg/kubelet/server/auth.go)."""

    def allowed(subresource: str, verb: str = "get", user: str = scraper.USER) -> bool:
        asked = {"resource": "nodes", "subresource": subresource, "verb": verb, "name": "n"}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        status_, answer = api.call("POST", path, {"spec": {"user": user, "resourceAttributes": asked}})
        assert status_ == http.HTTPStatus.CREATED
        return bool(answer["status"]["allowed"])

    until(lambda: allowed("metrics"))
    others = ("proxy", "stats", "log", "pods", "spec", "checkpoint", "configz", "healthz", "")
    assert [name for name in others if allowed(name)] == []
    assert not allowed("metrics", "create")
    assert not allowed("metrics", user=metrics_relay.USER)


def test_a_host_that_ends_while_its_api_server_is_down_says_what_it_leaves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Down:
        host = "10.0.0.11"

        def call(self, method: str, path: str) -> Any:
            raise ConnectionRefusedError("refused")

    scraping.Addresses(Down(), "api-1", PORT).leave()  # type: ignore[arg-type]
    assert "api-servers-api-1: stays: refused" in capsys.readouterr().out
