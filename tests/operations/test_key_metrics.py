"""What must be in the API before a rotation goes on: the keys of metrics-server, and for how long."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from kubernetes import client

from components.control_plane.host.metrics_keys import API_SERVICE, AUTHORITIES, SECRET, path
from operations.keys.metrics import MetricsKeys
from stacks.certificates import Request, Signed, issue, new_authority
from tests.operations.conftest import FakeServer

FIRST, SECOND = new_authority("kubernetes"), new_authority("kubernetes-2")
SERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class World:
    """An API, and a clock."""

    def __init__(self, server: FakeServer) -> None:
        self._server, self.now = server, 0.0
        configuration = client.Configuration(host=server.url)
        configuration.retries = False
        self._api = client.ApiClient(configuration)

    def has(self, authorities: str, signer: Signed | None) -> None:
        """Let the API have a caBundle, and a certificate of a signer; none without one."""
        data = {"tls.crt": encoded(issue(signer, Request("metrics-server")).certificate)} if signer else {}
        self._server.answers[SERVICE] = {"spec": {"caBundle": encoded(authorities)}}
        self._server.answers[path("secrets", SECRET)] = {"data": data}

    def trusts(self, authorities: str) -> None:
        self._server.answers[path("configmaps", AUTHORITIES)] = {"data": {"ca.crt": authorities}}

    def keys(self, ring: Any, *authorities: Signed, settled_s: float = 180) -> MetricsKeys:
        pem = "".join(each.certificate for each in authorities)
        return MetricsKeys(ring, pem, self._api, settled_s, lambda: self.now)


@pytest.fixture
def world(server: FakeServer) -> World:
    return World(server)


BOTH = FIRST.certificate + SECOND.certificate


def test_a_certificate_of_the_former_signer_holds_the_rotation_up(world: World) -> None:
    keys = world.keys("kubernetes-ca", SECOND, FIRST)
    world.has(BOTH, FIRST)
    assert keys.missing().startswith(
        "the certificate in Secret kube-system/metrics-server-serving is not of the signer"
    )
    world.has(BOTH, None)
    assert "is not of the signer" in keys.missing()
    world.has(BOTH, SECOND)
    assert "waiting 180 s until its pods use them" in keys.missing()


@pytest.mark.parametrize(
    "bundle",
    ["", FIRST.certificate, SECOND.certificate, BOTH + new_authority("x").certificate],
    ids=["none", "only the former", "only the signer", "one too many"],
)
def test_api_servers_must_have_exactly_the_authorities_of_the_ring(world: World, bundle: str) -> None:
    world.has(bundle, SECOND)
    assert "has other authorities; API servers write it" in world.keys("kubernetes-ca", SECOND, FIRST).missing()


def test_it_must_stay_right_for_a_while_because_hosts_with_former_files_may_write_too(world: World) -> None:
    keys = world.keys("kubernetes-ca", FIRST, SECOND)
    world.has(BOTH, FIRST)
    for world.now in (1.0, 179.0):
        assert keys.missing()
    world.has(FIRST.certificate, FIRST)
    assert "other authorities" in keys.missing()
    world.has(BOTH, FIRST)
    world.now = 300.0
    assert keys.missing()
    world.now = 360.0
    assert keys.missing() == ""


def test_the_authorities_of_kubelets_are_compared_without_their_order(world: World) -> None:
    keys = world.keys("kubelet-serving-ca", SECOND, FIRST, settled_s=0)
    world.trusts(FIRST.certificate)
    assert keys.missing() == "ConfigMap kube-system/kubelet-serving-ca has other authorities; API servers write it"
    world.trusts("")
    assert "has other authorities" in keys.missing()
    world.trusts(BOTH)
    assert keys.missing() == ""
