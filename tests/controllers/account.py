"""Access to the API as a controller's ServiceAccount, with a token like that of its pods."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any

from kubernetes import client

from controllers.kinds import ControllerKind
from controllers.manifests import NAMESPACE
from tests.tenancy.real import Server

DIRECTORY = "people: {ana: {}, bo: {}, cleo: {}}\nteams: {robotics: {members: [ana, bo], owners: [ana]}}\n"
TENANCY = {
    "directory": {"file": "people.yaml"},
    "leavers": "stop",
    "allocations": [{"pool": "workers", "team": "robotics", "hosts": 1}],
}
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def token_of(server: Server, kind: ControllerKind) -> str:
    """Request a token as a kubelet does."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{kind.name}/token"
    status, answer = server.real.call("POST", path, body)
    assert status == 201, answer
    return str(answer["status"]["token"])


@dataclass
class Account:
    """Access like that of `PodAccess`. said: the API's answer to the last `call`."""

    server: Server
    token: str
    said: str = ""

    def api(self, *, once: bool = False, connections: int | None = None) -> client.ApiClient:
        configuration = client.Configuration(host=self.server.server)
        configuration.ssl_ca_cert = str(self.server.folder / "certificates" / "apiserver.crt")
        configuration.assert_hostname = False
        configuration.api_key = {"BearerToken": f"bearer {self.token}"}
        return client.ApiClient(configuration)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str) -> int:
        """Return the HTTP status of a dry run of a request."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.real.port, timeout=30, context=tls)
        dry = "" if method == "GET" else f"{'&' if '?' in path else '?'}dryRun=All"
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, **headers}
        try:
            connection.request(method, path + dry, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            self.said = answer.read().decode()
            return answer.status
        finally:
            connection.close()
