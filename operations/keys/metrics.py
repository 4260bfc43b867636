"""What metrics-server, the scraper and the API have of two key rings: API-server hosts write it into the API
(`menagerie_host.metrics_keys`).

`kubernetes-ca` signs metrics-server's certificate, and API servers verify it by the APIService. It also signs the scraper's, which
hosts verify, and theirs, which the scraper verifies. Both verify kubelets by ConfigMaps with `kubelet-serving-ca`. Their pods reread
all of this a while after it changed.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from kubernetes import client

from clients.kube import Kube
from clients.objects import Place
from cluster.key_rings import RingName
from components.control_plane.host import scraping
from components.control_plane.host.metrics_keys import API_SERVICE, AUTHORITIES, NAMESPACE, SECRET

RINGS: frozenset[RingName] = frozenset({"kubernetes-ca", "kubelet-serving-ca"})
_PLACES = {"APIService": Place("apiregistration.k8s.io/v1", "apiservices")}


class MetricsKeys:
    """What a ring's authorities in `expected_pem`, signer first, must have become in the API. settled_s: how long it must stay so."""

    def __init__(
        self,
        name: RingName,
        expected_pem: str,
        api: client.ApiClient,
        settled_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = self._serving if name == "kubernetes-ca" else self._kubelets
        self._kube, self._clock = Kube(api, more=_PLACES), clock
        self._expected = x509.load_pem_x509_certificates(expected_pem.encode())
        self._settled_s, self._since = settled_s, clock()

    def missing(self) -> str:
        """Return what differs, or that it has not stayed the same for long enough; "" if it is as it must be."""
        if reason := self._look():
            self._since = self._clock()
            return f"{reason}; API servers write it"
        left = self._since + self._settled_s - self._clock()
        return (
            f"metrics-server and the scraper have their keys; waiting {self._settled_s:.0f} s until their pods use them"
            if left > 0
            else ""
        )

    def _serving(self) -> str:
        """Return what is wrong with the certificate, or with the authorities that API servers verify it by."""
        spec = self._kube.read("APIService", API_SERVICE)["spec"]
        if not self._same(base64.b64decode(spec.get("caBundle") or "")):
            return f"APIService {API_SERVICE} has other authorities"
        return (
            self._signed(NAMESPACE, SECRET)
            or self._signed(scraping.NAMESPACE, scraping.SECRET)
            or self._listed(scraping.NAMESPACE, scraping.AUTHORITIES, "ca.crt")
        )

    def _kubelets(self) -> str:
        """Return what is wrong with the authorities by which pods verify kubelets."""
        return self._listed(NAMESPACE, AUTHORITIES, "ca.crt") or self._listed(
            scraping.NAMESPACE, scraping.AUTHORITIES, "kubelet-serving-ca.crt"
        )

    def _signed(self, namespace: str, name: str) -> str:
        """Return why the certificate of a Secret is not of the signer, "" if it is."""
        held = self._kube.read("Secret", name, namespace).get("data") or {}
        certificates = _certificates(base64.b64decode(held.get("tls.crt", "")))
        signed = bool(certificates) and _issued(certificates[0], self._expected[0])
        return "" if signed else f"the certificate in Secret {namespace}/{name} is not of the signer"

    def _listed(self, namespace: str, name: str, key: str) -> str:
        """Return why a ConfigMap does not have the ring's authorities, "" if it does."""
        held = self._kube.read("ConfigMap", name, namespace).get("data") or {}
        same = self._same(str(held.get(key, "")).encode())
        return "" if same else f"{key} in ConfigMap {namespace}/{name} has other authorities"

    def _same(self, pem: bytes) -> bool:
        return frozenset(_certificates(pem)) == frozenset(self._expected)


def _certificates(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem) if pem.strip() else []


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
