"""The authorities that API servers publish for servers of aggregated APIs: of clients, and of the front proxy.

They are in the ConfigMap kube-system/extension-apiserver-authentication. Every API server adds its own authorities, checks
them once a minute, and removes only expired ones (k8s.io/kubernetes,
pkg/controlplane/controller/clusterauthenticationtrust, 1.35 and 1.36). Rotated-out authorities are therefore removed here;
they reappear if an API server still has them. Servers built with k8s.io/apiserver follow the ConfigMap while they run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from kubernetes import client

from clients.access import API_TIMEOUT_S
from cluster.key_rings import COMMON_NAMES, RingName

FIELDS: dict[RingName, str] = {
    "front-proxy-ca": "requestheader-client-ca-file",
    "kubernetes-ca": "client-ca-file",
}
NAME, NAMESPACE = "extension-apiserver-authentication", "kube-system"
SETTLED_S = 90.0
"""Within this time, an API server reloads its files and adds any other authority that it has."""


class Published:
    """A ring's published authorities, which must become those in `expected_pem`. settled_s: how long they must stay so."""

    def __init__(
        self,
        name: RingName,
        expected_pem: str,
        api: client.ApiClient,
        settled_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._field, self._core, self._clock = FIELDS[name], client.CoreV1Api(api), clock
        self._ours = re.compile(rf"{COMMON_NAMES[name]}(-[0-9]+)?")
        self._expected = x509.load_pem_x509_certificates(expected_pem.encode())
        self._settled_s, self._since = settled_s, clock()

    def missing(self) -> str:
        """Remove former authorities. Return why the published ones are not right, or not for long enough; "" if they are."""
        config_map = self._core.read_namespaced_config_map(NAME, NAMESPACE, _request_timeout=API_TIMEOUT_S)
        published = x509.load_pem_x509_certificates((config_map.data or {}).get(self._field, "").encode())
        kept = [
            certificate for certificate in published if certificate in self._expected or not self._is_ours(certificate)
        ]
        if kept != published:
            self._since = self._clock()
            self._write(config_map, kept)
            return f"removed {len(published) - len(kept)} former authorities in {self._field} from {NAMESPACE}/{NAME}"
        if lacking := len([certificate for certificate in self._expected if certificate not in published]):
            self._since = self._clock()
            return f"{NAMESPACE}/{NAME} lacks {lacking} authorities in {self._field}; API servers add them"
        settled = self._clock() - self._since >= self._settled_s
        return (
            ""
            if settled
            else f"{NAMESPACE}/{NAME} has the right {self._field}; watching for {self._settled_s:.0f} s whether it stays"
        )

    def _is_ours(self, certificate: x509.Certificate) -> bool:
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return bool(names and self._ours.fullmatch(str(names[0].value)))

    def _write(self, config_map: client.V1ConfigMap, kept: list[x509.Certificate]) -> None:
        """Write the authorities. Fails with 409 if an API server has written since `config_map` was read."""
        text = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in kept)
        body = {"metadata": {"resourceVersion": config_map.metadata.resource_version}, "data": {self._field: text}}
        self._core.patch_namespaced_config_map(NAME, NAMESPACE, body, _request_timeout=API_TIMEOUT_S)
