"""What is taken out of the ConfigMap for servers of aggregated APIs, and when that counts as done."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from kubernetes import client

from operations.keys import published
from stacks.certificates import new_authority

FIRST, SECOND, FOREIGN = (new_authority(name).certificate for name in ("front-proxy", "front-proxy-2", "somebody-s"))


class Cluster:
    """The ConfigMap, to a client that reads and patches it; a clock that is moved by hand."""

    def __init__(self, *held: str) -> None:
        self.held, self.now, self.writes = "".join(held), 0.0, 0

    def read_namespaced_config_map(self, *_: Any, **__: Any) -> client.V1ConfigMap:
        data = {published.FIELDS["front-proxy-ca"]: self.held}
        return client.V1ConfigMap(metadata=client.V1ObjectMeta(resource_version="7"), data=data)

    def patch_namespaced_config_map(self, name: str, namespace: str, body: dict[str, Any], **_: Any) -> None:
        assert (name, namespace) == (published.NAME, published.NAMESPACE)
        assert body["metadata"] == {"resourceVersion": "7"}
        ((_, self.held),) = body["data"].items()
        self.writes += 1

    @property
    def names(self) -> list[str]:
        return [each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(self.held.encode())]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(cluster: Cluster, *wanted: str) -> published.Published:
        monkeypatch.setattr(published.client, "CoreV1Api", lambda _: cluster)
        return published.Published("front-proxy-ca", "".join(wanted), None, 90, lambda: cluster.now)  # type: ignore[arg-type]

    return of


def test_one_that_is_not_published_yet_is_waited_for_and_then_for_it_to_stay(made: Any) -> None:
    cluster = Cluster(FIRST)
    state = made(cluster, FIRST, SECOND)
    cluster.now = 500
    assert "lacks 1 of requestheader-client-ca-file" in state.missing()
    cluster.held += SECOND
    assert "will tell if it stays" in state.missing()
    cluster.now = 590
    assert state.missing() == ""
    assert cluster.writes == 0


def test_a_former_one_is_taken_away_each_time_that_it_comes_back(made: Any) -> None:
    cluster = Cluster(FIRST, SECOND)
    state = made(cluster, SECOND)
    assert "took 1 former" in state.missing()
    assert cluster.names == ["CN=front-proxy-2"]
    cluster.now, cluster.held = 60, SECOND + FIRST
    assert "took 1 former" in state.missing()
    cluster.now = 149
    assert "will tell" in state.missing(), "of the second time"
    cluster.now = 150
    assert state.missing() == ""


def test_what_somebody_else_put_there_stays(made: Any) -> None:
    cluster = Cluster(FIRST, FOREIGN, SECOND)
    made(cluster, SECOND).missing()
    assert cluster.names == ["CN=somebody-s", "CN=front-proxy-2"]
