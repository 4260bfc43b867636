"""A fake of Azure's scale sets, tokens and metadata, following the documented HTTP APIs."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from tests.scheduling.clouds.door import Request, Response, json_response

MANAGEMENT, LOGIN, METADATA = "management.azure.com", "login.microsoftonline.com", "169.254.169.254"
_KIND = "providers/Microsoft.Compute/virtualMachineScaleSets"
EXPIRED = "The access token expiry UTC time '11/1/2026 1:00:00 AM' is earlier than current UTC time."


def split(request: Request) -> tuple[str, dict[str, str]]:
    path, _, query = request.path.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


def refused(status: int, code: str, message: str, **headers: str) -> Response:
    return json_response(status, {"error": {"code": code, "message": message}}, **headers)


def too_many(**headers: str) -> Response:
    """Return Compute's throttling error, whose code is that of a quota ("Troubleshoot API throttling errors")."""
    details = [{"code": "TooManyRequests", "target": "HighCostGet30Min", "message": '{"operationGroup":"HighCostGet"}'}]
    message = "The server rejected the request because too many requests have been received for this subscription."
    return json_response(
        429, {"error": {"code": "OperationNotAllowed", "message": message, "details": details}}, **headers
    )


@dataclass
class Set:
    tags: dict[str, str]
    capacity: int
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    state: str = "Succeeded"
    statuses: list[dict[str, str]] = field(default_factory=list)
    made: int = 0

    def resize(self, size: int) -> None:
        self.capacity = size
        while len(self.members) < size:
            self.members[str(self.made)] = {
                "provisioningState": "Succeeded",
                "timeCreated": "2026-11-01T00:00:00.1234567+00:00",
                "latestModelApplied": True,
                "instanceView": {"statuses": [{"code": "PowerState/running", "level": "Info"}]},
            }
            self.made += 1


@dataclass
class Microsoft:
    """The fake. sets: (resource group, name) -> scale set. page: machines and sets per page. secret: that of the client.

    tokens: accepted ones, the newest last.
    """

    sets: dict[tuple[str, str], Set] = field(default_factory=dict)
    page: int = 100
    secret: str = "a-secret"
    tokens: list[str] = field(default_factory=list)

    def add(self, group: str, name: str, tags: dict[str, str], size: int) -> Set:
        self.sets[group, name] = scale_set = Set(tags, 0)
        scale_set.resize(size)
        return scale_set

    def answer(self, request: Request) -> Response:
        if request.host != MANAGEMENT:
            return self._login(request) if request.host == LOGIN else Response(404, "not found")
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            challenge = (
                f'Bearer authorization_uri="https://{LOGIN}/a-tenant", error="invalid_token", error_description="x"'
            )
            return refused(401, "ExpiredAuthenticationToken", EXPIRED, www_authenticate=challenge)
        path, query = split(request)
        assert query["api-version"]
        match = re.fullmatch(rf"/subscriptions/a-sub/resourceGroups/([\w-]+)/{_KIND}(?:/([\w-]+)(?:/(\w+))?)?", path)
        if not match:
            return refused(403, "AuthorizationFailed", f"The client does not have authorization over scope '{path}'.")
        group, name, what = match.groups()
        if name is None:
            return self._page(request, [self._set(*key) for key in sorted(self.sets) if key[0] == group])
        return self._one(request, group, name, what)

    def _one(self, request: Request, group: str, name: str, what: str | None) -> Response:
        scale_set = self.sets[group, name]
        match request.method, what:
            case "GET", "virtualMachines":
                at = self._set(group, name)["id"]
                return self._page(request, [_machine(at, *each) for each in sorted(scale_set.members.items())])
            case "GET", "instanceView":
                return json_response(200, {"virtualMachine": {"statusesSummary": []}, "statuses": scale_set.statuses})
            case "PATCH", None:
                scale_set.resize(json.loads(request.body)["sku"]["capacity"])
                state = {"provisioningState": "Updating"}
                return json_response(200, {**self._set(group, name), "properties": state}, **_operation(request))
            case "POST", "delete":
                return self._delete(request, scale_set)
        raise AssertionError(request)

    def new_token(self) -> dict[str, Any]:
        self.tokens.append(f"t0ken-{len(self.tokens)}")
        return {"access_token": self.tokens[-1], "expires_in": 3599, "ext_expires_in": 3599, "token_type": "Bearer"}

    def _delete(self, request: Request, scale_set: Set) -> Response:
        numbers = json.loads(request.body)["instanceIds"]
        if gone := [number for number in numbers if number not in scale_set.members]:
            message = f"The provided instanceId {gone[0]} is not an active Virtual Machine Scale Set VM instanceId."
            return refused(400, "InvalidParameter", message)
        for number in numbers:
            del scale_set.members[number]
        scale_set.capacity -= len(numbers)
        operation = _operation(request)
        at = operation["azure_asyncoperation"]
        return Response(202, "", {"Azure-AsyncOperation": at, "Location": f"{at}&monitor=true", "Retry-After": "10"})

    def _login(self, request: Request) -> Response:
        path, _ = split(request)
        if path == "/common/discovery/instance":
            aliases = {"preferred_network": LOGIN, "preferred_cache": "login.windows.net", "aliases": [LOGIN]}
            return json_response(200, {"tenant_discovery_endpoint": _openid("a-tenant"), "metadata": [aliases]})
        if path == "/a-tenant/v2.0/.well-known/openid-configuration":
            at = f"https://{LOGIN}/a-tenant"
            ends = {f"{name}_endpoint": f"{at}/oauth2/v2.0/{name}" for name in ("token", "authorize")}
            authorization = {"authorization_endpoint": ends.pop("authorize_endpoint")}
            return json_response(200, {**ends, **authorization, "issuer": f"{at}/v2.0"})
        assert path == "/a-tenant/oauth2/v2.0/token", path
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        assert form["client_id"] == "a-client"
        assert form["scope"] == f"https://{MANAGEMENT}/.default"
        if form.get("client_secret", form.get("client_assertion")) != self.secret:
            error = "AADSTS7000215: Invalid client secret provided."
            return json_response(401, {"error": "invalid_client", "error_description": error, "error_codes": [7000215]})
        return json_response(200, self.new_token())

    def _page(self, request: Request, items: list[Any]) -> Response:
        path, _, query = request.path.partition("&$skiptoken=")
        start = int(query or 0)
        page: dict[str, Any] = {"value": items[start : start + self.page]}
        if start + self.page < len(items):
            page["nextLink"] = f"https://{MANAGEMENT}{path}&$skiptoken={start + self.page}"
        return json_response(200, page)

    def _set(self, group: str, name: str) -> dict[str, Any]:
        scale_set = self.sets[group, name]
        return {
            "name": name,
            "id": f"/subscriptions/a-sub/resourceGroups/{group}/{_KIND}/{name}",
            "type": "Microsoft.Compute/virtualMachineScaleSets",
            "location": "westeurope",
            "tags": scale_set.tags,
            "sku": {"name": "Standard_D8s_v5", "tier": "Standard", "capacity": scale_set.capacity},
            "zones": ["1", "2", "3"],
            "properties": {"provisioningState": scale_set.state, "orchestrationMode": "Uniform"},
        }


def _openid(tenant: str) -> str:
    return f"https://{LOGIN}/{tenant}/v2.0/.well-known/openid-configuration"


def _operation(request: Request) -> dict[str, str]:
    """Return the header with the URL of an operation's status, which the autoscaler may not read."""
    at = f"https://{MANAGEMENT}/subscriptions/a-sub/providers/Microsoft.Compute/locations/westeurope/operations/1"
    return {"azure_asyncoperation": f"{at}?p=1&api-version={split(request)[1]['api-version']}"}


def _machine(at: str, number: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"pool_{number}",
        "id": f"{at}/virtualMachines/{number}",
        "instanceId": number,
        "location": "westeurope",
        "zones": ["2"],
        "properties": properties,
    }
