"""What API servers publish for servers of aggregated APIs: whose clients, and whose word on clients, these may trust.

It is the ConfigMap kube-system/extension-apiserver-authentication. Each API server adds its own authorities, looks once a
minute whether they are there, and takes away what has expired and nothing else (k8s.io/kubernetes,
pkg/controlplane/controller/clusterauthenticationtrust, 1.35 and 1.36). So one that was rotated out is taken away here, and
comes back where an API server still has it. Servers made with k8s.io/apiserver follow the ConfigMap while they run.
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
from cluster.key_rings import RingName
from stacks.pki import COMMON_NAMES

FIELDS: dict[RingName, str] = {
    "front-proxy-ca": "requestheader-client-ca-file",
    "kubernetes-ca": "client-ca-file",
}
NAME, NAMESPACE = "extension-apiserver-authentication", "kube-system"
SETTLED_S = 90.0
"""An API server that has another authority would have added it by then; it has also read its own files again."""


class Published:
    """The authorities of a ring, to become those of a PEM text. settled_s: for how long they must have stayed so."""

    def __init__(
        self,
        name: RingName,
        wanted: str,
        api: client.ApiClient,
        settled_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._field, self._core, self._clock = FIELDS[name], client.CoreV1Api(api), clock
        self._ours = re.compile(rf"{COMMON_NAMES[name]}(-[0-9]+)?")
        self._wanted = x509.load_pem_x509_certificates(wanted.encode())
        self._settled_s, self._since = settled_s, clock()

    def missing(self) -> str:
        """Take away what the ring does not have any more. Why they are not these, or not for long yet; nothing once they are."""
        found = self._core.read_namespaced_config_map(NAME, NAMESPACE, _request_timeout=API_TIMEOUT_S)
        published = x509.load_pem_x509_certificates((found.data or {}).get(self._field, "").encode())
        kept = [each for each in published if each in self._wanted or not self._is_ours(each)]
        if kept != published:
            self._since = self._clock()
            self._write(found, kept)
            return f"took {len(published) - len(kept)} former of {self._field} away from {NAMESPACE}/{NAME}"
        if lacking := len([each for each in self._wanted if each not in published]):
            self._since = self._clock()
            return f"{NAMESPACE}/{NAME} lacks {lacking} of {self._field}, which API servers add"
        settled = self._clock() - self._since >= self._settled_s
        return (
            ""
            if settled
            else f"{NAMESPACE}/{NAME} has the wanted {self._field}; {self._settled_s:.0f} s will tell if it stays"
        )

    def _is_ours(self, certificate: x509.Certificate) -> bool:
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return bool(names and self._ours.fullmatch(str(names[0].value)))

    def _write(self, found: client.V1ConfigMap, kept: list[x509.Certificate]) -> None:
        """Refused with 409 where an API server has written since it was read."""
        text = "".join(each.public_bytes(Encoding.PEM).decode() for each in kept)
        body = {"metadata": {"resourceVersion": found.metadata.resource_version}, "data": {self._field: text}}
        self._core.patch_namespaced_config_map(NAME, NAMESPACE, body, _request_timeout=API_TIMEOUT_S)
