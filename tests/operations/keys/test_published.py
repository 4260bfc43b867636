"""Removal from the ConfigMap for servers of aggregated APIs, and when it counts as done."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from kubernetes import client

from operations.keys import published
from stacks.certificates import new_authority

FIRST, SECOND, FOREIGN = (new_authority(name).certificate for name in ("front-proxy", "front-proxy-2", "somebody-s"))


class Cluster:
    """A client with the ConfigMap, which it reads and patches, and a clock that tests move."""

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
    def of(cluster: Cluster, *pems: str) -> published.Published:
        monkeypatch.setattr(published.client, "CoreV1Api", lambda _: cluster)
        return published.Published("front-proxy-ca", "".join(pems), None, 90, lambda: cluster.now)  # type: ignore[arg-type]

    return of


def test_an_unpublished_authority_is_waited_for_and_must_then_stay(made: Any) -> None:
    cluster = Cluster(FIRST)
    state = made(cluster, FIRST, SECOND)
    cluster.now = 500
    assert "lacks 1 authorities in requestheader-client-ca-file" in state.missing()
    cluster.held += SECOND
    assert "whether it stays" in state.missing()
    cluster.now = 590
    assert state.missing() == ""
    assert cluster.writes == 0


def test_a_former_authority_is_removed_every_time_it_reappears(made: Any) -> None:
    cluster = Cluster(FIRST, SECOND)
    state = made(cluster, SECOND)
    assert "removed 1 former" in state.missing()
    assert cluster.names == ["CN=front-proxy-2"]
    cluster.now, cluster.held = 60, SECOND + FIRST
    assert "removed 1 former" in state.missing()
    cluster.now = 149
    assert "whether it stays" in state.missing(), "of the second time"
    cluster.now = 150
    assert state.missing() == ""


def test_authorities_from_others_stay(made: Any) -> None:
    cluster = Cluster(FIRST, FOREIGN, SECOND)
    made(cluster, SECOND).missing()
    assert cluster.names == ["CN=somebody-s", "CN=front-proxy-2"]
