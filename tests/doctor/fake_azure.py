"""A subscription of Azure that follows the documented HTTP of Resource Manager, with the tokens of the autoscaler's fake."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

from stacks.azure.hosts import DEBIAN
from tests.scheduling.clouds.door import Request, Response, json_response
from tests.scheduling.clouds.fake_azure import LOGIN, MANAGEMENT, Microsoft, refused, split

ID = "/subscriptions/a-sub"
REGION, FAMILY = "swedencentral", "standardDSv5Family"
_VERSIONS = re.compile(
    r"/providers/Microsoft.Compute/locations/\w+/publishers/([^/]+)/artifacttypes/vmimage/offers/([^/]+)/skus/([^/]+)/versions"
)


def token(**claims: str) -> str:
    """Return a token in the form of a JWT. Nobody verifies its signature."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.x"


def size(
    name: str, family: str, vcpus: int, zones: tuple[str, ...] = ("1", "2", "3"), cpu: str = "x64"
) -> dict[str, Any]:
    """Return a size as "Resource Skus - List" does."""
    capabilities = {"vCPUs": str(vcpus), "CpuArchitectureType": cpu, "HyperVGenerations": "V1,V2"}
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "family": family,
        "locations": [REGION],
        "locationInfo": [{"location": REGION, "zones": list(zones)}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        "restrictions": [],
    }


def usage(name: str, limit: int, used: int = 0) -> dict[str, Any]:
    label = f"{name} vCPUs"
    return {"limit": limit, "currentValue": used, "unit": "Count", "name": {"value": name, "localizedValue": label}}


OWNER = {"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}
"""Azure's Owner may not read blobs ("Azure built-in roles")."""
WRITER = {"actions": [], "dataActions": ["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/*"]}


@dataclass
class Subscription:
    """The fake. roles: permissions of the caller's roles. page: sizes in a page. groups: name -> tags."""

    state: str = "Enabled"
    roles: list[dict[str, list[str]]] = field(default_factory=lambda: [OWNER, WRITER])
    unregistered: set[str] = field(default_factory=set)
    sizes: list[dict[str, Any]] = field(
        default_factory=lambda: [size("Standard_D4s_v5", FAMILY, 4), size("Standard_D8s_v5", FAMILY, 8)]
    )
    compute: list[dict[str, Any]] = field(
        default_factory=lambda: [usage(FAMILY, 200), usage("cores", 250), usage("lowPriorityCores", 100)]
    )
    network: list[dict[str, Any]] = field(
        default_factory=lambda: [usage("VirtualNetworks", 50), usage("PublicIPAddresses", 10)]
    )
    architecture: str = "x64"
    images: set[str] = field(default_factory=lambda: {DEBIAN.rpartition(":")[0]})
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    watched: bool = True
    page: int = 1
    secret: str = "a-secret"
    tokens: list[str] = field(default_factory=lambda: [token(appid="a-client", oid="an-object")])

    def answer(self, request: Request) -> Response:
        if request.host == LOGIN:
            return self._login(request)
        assert request.host == MANAGEMENT, request
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return refused(401, "ExpiredAuthenticationToken", "The access token has expired.")
        path, query = split(request)
        assert request.method == "GET", request
        assert query.get("api-version"), request
        below = path.removeprefix(ID)
        answers = [
            self._account(below),
            self._registration(below),
            self._lists(below, query),
            self._image(below),
            self._existing(below),
        ]
        return next((each for each in answers if each), refused(404, "ResourceNotFound", f"{path} was not found"))

    def _login(self, request: Request) -> Response:
        if request.path.endswith("/token") and f"client_secret={self.secret}" in request.body.decode():
            return json_response(200, {"access_token": self.tokens[-1], "expires_in": 3599, "token_type": "Bearer"})
        return Microsoft(secret=self.secret).answer(request)

    def _account(self, path: str) -> Response | None:
        if path == "":
            return json_response(200, {"id": ID, "displayName": "research", "state": self.state})
        if path == "/providers/Microsoft.Authorization/permissions":
            return json_response(200, {"value": self.roles})
        return None

    def _registration(self, path: str) -> Response | None:
        name = path.rpartition("/")[2]
        state = "NotRegistered" if name in self.unregistered else "Registered"
        if re.fullmatch(r"/providers/Microsoft\.\w+", path):
            return json_response(200, {"namespace": name, "registrationState": state})
        if path.startswith("/providers/Microsoft.Features/"):
            return json_response(200, {"name": f"Microsoft.Compute/{name}", "properties": {"state": state}})
        return None

    def _lists(self, path: str, query: dict[str, str]) -> Response | None:
        if path == "/providers/Microsoft.Compute/skus":
            at = int(query.get("skip", 0))
            more = at + self.page < len(self.sizes)
            if not at:
                assert query["$filter"] == f"location eq '{REGION}'"
            after = f"https://{MANAGEMENT}{ID}{path}?api-version=1&skip={at + self.page}"
            page = {"value": self.sizes[at : at + self.page], **({"nextLink": after} if more else {})}
            return json_response(200, page)
        if path == f"/providers/Microsoft.Compute/locations/{REGION}/usages":
            return json_response(200, {"value": self.compute})
        if path == f"/providers/Microsoft.Network/locations/{REGION}/usages":
            return json_response(200, {"value": self.network})
        return None

    def _image(self, path: str) -> Response | None:
        match = _VERSIONS.match(path)
        if match is None or ":".join(match.groups()) not in self.images:
            return None
        if path == match[0]:
            return json_response(200, [{"name": "0.20261101.1", "location": REGION}])
        properties = {"architecture": self.architecture, "hyperVGeneration": "V2"}
        return json_response(200, {"name": path.rpartition("/")[2], "location": REGION, "properties": properties})

    def _existing(self, path: str) -> Response | None:
        name = path.rpartition("/")[2]
        if path.startswith("/resourcegroups/") and name in self.groups:
            return json_response(200, {"name": name, "tags": self.groups[name]})
        if name == f"NetworkWatcher_{REGION}" and self.watched:
            return json_response(200, {"name": name, "location": REGION})
        return None
