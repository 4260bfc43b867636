"""Azure's scale sets, tokens and metadata, as far as their documentation says what the HTTP is."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from tests.scheduling.clouds.door import Asked, Told, told

MANAGEMENT, LOGIN, METADATA = "management.azure.com", "login.microsoftonline.com", "169.254.169.254"
_KIND = "providers/Microsoft.Compute/virtualMachineScaleSets"
EXPIRED = "The access token expiry UTC time '11/1/2026 1:00:00 AM' is earlier than current UTC time."


def split(asked: Asked) -> tuple[str, dict[str, str]]:
    path, _, query = asked.path.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


def refused(status: int, code: str, message: str, **headers: str) -> Told:
    return told(status, {"error": {"code": code, "message": message}}, **headers)


def too_many(**headers: str) -> Told:
    """ "Troubleshoot API throttling errors": Compute's own, whose code is that of a quota."""
    details = [{"code": "TooManyRequests", "target": "HighCostGet30Min", "message": '{"operationGroup":"HighCostGet"}'}]
    message = "The server rejected the request because too many requests have been received for this subscription."
    return told(429, {"error": {"code": "OperationNotAllowed", "message": message, "details": details}}, **headers)


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
    """sets: (group of resources, name) -> scale set. page: machines and sets of one page. secret: what proves who asks.

    tokens: those that it takes, the newest last.
    """

    sets: dict[tuple[str, str], Set] = field(default_factory=dict)
    page: int = 100
    secret: str = "a-secret"
    tokens: list[str] = field(default_factory=list)

    def add(self, group: str, name: str, tags: dict[str, str], size: int) -> Set:
        self.sets[group, name] = made = Set(tags, 0)
        made.resize(size)
        return made

    def answer(self, asked: Asked) -> Told:
        if asked.host != MANAGEMENT:
            return self._login(asked) if asked.host == LOGIN else Told(404, "not found")
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            challenge = (
                f'Bearer authorization_uri="https://{LOGIN}/a-tenant", error="invalid_token", error_description="x"'
            )
            return refused(401, "ExpiredAuthenticationToken", EXPIRED, www_authenticate=challenge)
        path, query = split(asked)
        assert query["api-version"]
        found = re.fullmatch(rf"/subscriptions/a-sub/resourceGroups/([\w-]+)/{_KIND}(?:/([\w-]+)(?:/(\w+))?)?", path)
        if not found:
            return refused(403, "AuthorizationFailed", f"The client does not have authorization over scope '{path}'.")
        group, name, what = found.groups()
        if name is None:
            return self._page(asked, [self._set(*key) for key in sorted(self.sets) if key[0] == group])
        return self._one(asked, group, name, what)

    def _one(self, asked: Asked, group: str, name: str, what: str | None) -> Told:
        scale_set = self.sets[group, name]
        match asked.method, what:
            case "GET", "virtualMachines":
                at = self._set(group, name)["id"]
                return self._page(asked, [_machine(at, *each) for each in sorted(scale_set.members.items())])
            case "GET", "instanceView":
                return told(200, {"virtualMachine": {"statusesSummary": []}, "statuses": scale_set.statuses})
            case "PATCH", None:
                scale_set.resize(json.loads(asked.body)["sku"]["capacity"])
                state = {"provisioningState": "Updating"}
                return told(200, {**self._set(group, name), "properties": state}, **_operation(asked))
            case "POST", "delete":
                return self._delete(asked, scale_set)
        raise AssertionError(asked)

    def new_token(self) -> dict[str, Any]:
        self.tokens.append(f"t0ken-{len(self.tokens)}")
        return {"access_token": self.tokens[-1], "expires_in": 3599, "ext_expires_in": 3599, "token_type": "Bearer"}

    def _delete(self, asked: Asked, scale_set: Set) -> Told:
        numbers = json.loads(asked.body)["instanceIds"]
        if gone := [number for number in numbers if number not in scale_set.members]:
            message = f"The provided instanceId {gone[0]} is not an active Virtual Machine Scale Set VM instanceId."
            return refused(400, "InvalidParameter", message)
        for number in numbers:
            del scale_set.members[number]
        scale_set.capacity -= len(numbers)
        operation = _operation(asked)
        at = operation["azure_asyncoperation"]
        return Told(202, "", {"Azure-AsyncOperation": at, "Location": f"{at}&monitor=true", "Retry-After": "10"})

    def _login(self, asked: Asked) -> Told:
        path, _ = split(asked)
        if path == "/common/discovery/instance":
            aliases = {"preferred_network": LOGIN, "preferred_cache": "login.windows.net", "aliases": [LOGIN]}
            return told(200, {"tenant_discovery_endpoint": _openid("a-tenant"), "metadata": [aliases]})
        if path == "/a-tenant/v2.0/.well-known/openid-configuration":
            at = f"https://{LOGIN}/a-tenant"
            ends = {f"{name}_endpoint": f"{at}/oauth2/v2.0/{name}" for name in ("token", "authorize")}
            authorization = {"authorization_endpoint": ends.pop("authorize_endpoint")}
            return told(200, {**ends, **authorization, "issuer": f"{at}/v2.0"})
        assert path == "/a-tenant/oauth2/v2.0/token", path
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        assert form["client_id"] == "a-client"
        assert form["scope"] == f"https://{MANAGEMENT}/.default"
        if form.get("client_secret", form.get("client_assertion")) != self.secret:
            error = "AADSTS7000215: Invalid client secret provided."
            return told(401, {"error": "invalid_client", "error_description": error, "error_codes": [7000215]})
        return told(200, self.new_token())

    def _page(self, asked: Asked, items: list[Any]) -> Told:
        path, _, query = asked.path.partition("&$skiptoken=")
        start = int(query or 0)
        page: dict[str, Any] = {"value": items[start : start + self.page]}
        if start + self.page < len(items):
            page["nextLink"] = f"https://{MANAGEMENT}{path}&$skiptoken={start + self.page}"
        return told(200, page)

    def _set(self, group: str, name: str) -> dict[str, Any]:
        found = self.sets[group, name]
        return {
            "name": name,
            "id": f"/subscriptions/a-sub/resourceGroups/{group}/{_KIND}/{name}",
            "type": "Microsoft.Compute/virtualMachineScaleSets",
            "location": "westeurope",
            "tags": found.tags,
            "sku": {"name": "Standard_D8s_v5", "tier": "Standard", "capacity": found.capacity},
            "zones": ["1", "2", "3"],
            "properties": {"provisioningState": found.state, "orchestrationMode": "Uniform"},
        }


def _openid(tenant: str) -> str:
    return f"https://{LOGIN}/{tenant}/v2.0/.well-known/openid-configuration"


def _operation(asked: Asked) -> dict[str, str]:
    """Where an operation can be followed. The autoscaler has no right to."""
    at = f"https://{MANAGEMENT}/subscriptions/a-sub/providers/Microsoft.Compute/locations/westeurope/operations/1"
    return {"azure_asyncoperation": f"{at}?p=1&api-version={split(asked)[1]['api-version']}"}


def _machine(at: str, number: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"pool_{number}",
        "id": f"{at}/virtualMachines/{number}",
        "instanceId": number,
        "location": "westeurope",
        "zones": ["2"],
        "properties": properties,
    }
