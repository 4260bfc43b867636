"""What must be in the API before a rotation goes on: the keys of metrics-server, and for how long."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from kubernetes import client

from components.control_plane.host import scraping
from components.control_plane.host.metrics_keys import API_SERVICE, AUTHORITIES, SECRET, path
from operations.keys.metrics import MetricsKeys
from stacks.certificates import Request, Signed, issue, new_authority
from tests.operations.conftest import FakeServer

FIRST, SECOND = new_authority("kubernetes"), new_authority("kubernetes-2")
SERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"


CLIENT = path("secrets", scraping.SECRET, scraping.NAMESPACE)
TRUSTED = path("configmaps", scraping.AUTHORITIES, scraping.NAMESPACE)


def certificate(signer: Signed | None) -> dict[str, str]:
    return {"tls.crt": encoded(issue(signer, Request("x")).certificate)} if signer else {}


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
        """Let the API have a caBundle, and certificates of a signer; none without one."""
        self._server.answers[SERVICE] = {"spec": {"caBundle": encoded(authorities)}}
        self._server.answers[path("secrets", SECRET)] = {"data": certificate(signer)}
        self.scraper_has(authorities, signer)

    def scraper_has(self, authorities: str, signer: Signed | None, kubelets: str = "") -> None:
        """Let the scraper have these authorities, and a certificate of a signer."""
        data = {"ca.crt": authorities, "kubelet-serving-ca.crt": kubelets}
        self._server.answers[CLIENT] = {"data": certificate(signer)}
        self._server.answers[TRUSTED] = {"data": data}

    def trusts(self, authorities: str) -> None:
        self._server.answers[path("configmaps", AUTHORITIES)] = {"data": {"ca.crt": authorities}}
        self.scraper_has("", None, authorities)

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
    assert "waiting 180 s until their pods use them" in keys.missing()


@pytest.mark.parametrize("bundle", ["", FIRST.certificate, SECOND.certificate, BOTH + new_authority("x").certificate])
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
    reason = "ca.crt in ConfigMap kube-system/kubelet-serving-ca has other authorities; API servers write it"
    assert keys.missing() == reason
    world.trusts("")
    assert "has other authorities" in keys.missing()
    world.trusts(BOTH)
    assert keys.missing() == ""


def test_a_scraper_with_a_certificate_of_the_former_signer_holds_the_rotation_up(world: World) -> None:
    """Hosts would refuse it in the next state."""
    keys = world.keys("kubernetes-ca", SECOND, FIRST, settled_s=0)
    world.has(BOTH, SECOND)
    world.scraper_has(BOTH, FIRST)
    assert keys.missing().startswith("the certificate in Secret menagerie-monitoring/scraper is not of the signer")
    world.scraper_has(FIRST.certificate, SECOND)
    assert keys.missing().startswith("ca.crt in ConfigMap menagerie-monitoring/scraper-authorities has other")
    world.scraper_has(BOTH, SECOND)
    assert keys.missing() == ""


def test_a_scraper_that_does_not_know_the_next_signer_of_kubelets_holds_the_rotation_up(world: World) -> None:
    keys = world.keys("kubelet-serving-ca", FIRST, SECOND, settled_s=0)
    world.trusts(BOTH)
    world.scraper_has("", None, FIRST.certificate)
    assert keys.missing().startswith("kubelet-serving-ca.crt in ConfigMap menagerie-monitoring/scraper-authorities has")
    world.scraper_has("", None, BOTH)
    assert keys.missing() == ""
