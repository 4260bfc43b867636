"""Azure's scale sets and Google's managed instance groups, as far as their documentation says what the HTTP is."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from tests.scheduling.clouds.door import Asked, Told, told

TOKEN = "t0ken"


def split(asked: Asked) -> tuple[str, dict[str, str]]:
    path, _, query = asked.path.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


@dataclass
class ManagedGroup:
    """errors: of machines that could not be made: name -> code and message."""

    template: str
    target: int
    members: dict[str, str] = field(default_factory=dict)
    errors: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass
class Google:
    """groups: (zone, name) -> group. templates: name -> labels. Members get numbers; a target that is above them makes more."""

    project: str = "a-project"
    region: str = "europe-west4"
    groups: dict[tuple[str, str], ManagedGroup] = field(default_factory=dict)
    templates: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    made: int = 0

    def add(self, zone: str, name: str, labels: dict[str, str], size: int) -> None:
        self.templates[f"{name}-template"] = labels
        self.groups[zone, name] = group = ManagedGroup(f"{name}-template", 0)
        self.resize(group, name, size)

    def resize(self, group: ManagedGroup, name: str, size: int) -> None:
        group.target = size
        while len(group.members) < size:
            self.made += 1
            group.members[f"{name}-{self.made:04}"] = "NONE"

    def answer(self, asked: Asked) -> Told:
        path, query = split(asked)
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return told(401, {"error": {"code": 401, "message": "Request had invalid authentication credentials."}})
        root = f"/compute/v1/projects/{self.project}"
        if path == f"{root}/regions/{self.region}/instanceTemplates" and asked.method == "GET":
            return self._page("items", [self._template(name) for name in sorted(self.templates)], query)
        found = re.fullmatch(rf"{root}/zones/([\w-]+)/instanceGroupManagers(?:/([\w-]+)/(\w+))?", path)
        if not found:
            return told(
                404, {"error": {"code": 404, "message": f"{path} was not found", "errors": [{"reason": "notFound"}]}}
            )
        zone, name, what = found.groups()
        if name is None:
            items = [self._manager(zone, each) for at, each in sorted(self.groups) if at == zone]
            return self._page("items", items, query)
        group = self.groups[zone, name]
        if what == "listManagedInstances" and asked.method == "POST":
            members = [self._member(group, zone, each) for each in sorted(group.members)]
            return self._page("managedInstances", members, query)
        return self._change(group, name, what, zone, query, asked)

    def _change(
        self, group: ManagedGroup, name: str, what: str, zone: str, query: dict[str, str], asked: Asked
    ) -> Told:
        done = {"kind": "compute#operation", "status": "RUNNING"}
        if query["requestId"] in self.requests:
            return told(200, done)
        self.requests.add(query["requestId"])
        if what == "resize":
            self.resize(group, name, int(query["size"]))
            return told(200, done)
        assert what == "deleteInstances"
        body = json.loads(asked.body)
        for url in body["instances"]:
            at, _, machine = url.removeprefix("zones/").partition("/instances/")
            if at != zone or machine not in group.members:
                assert body["skipInstancesOnValidationError"] is True
                continue
            del group.members[machine]
            group.target -= 1
        return told(200, done)

    def _page(self, key: str, items: list[Any], query: dict[str, str]) -> Told:
        start, most = int(query.get("pageToken", 0)), int(query["maxResults"])
        page: dict[str, Any] = {key: items[start : start + most]} if items else {}
        if start + most < len(items):
            page["nextPageToken"] = str(start + most)
        return told(200, page)

    def _template(self, name: str) -> dict[str, Any]:
        return {"name": name, "selfLink": self._link(name), "properties": {"labels": self.templates[name]}}

    def _link(self, template: str) -> str:
        root = f"https://www.googleapis.com/compute/v1/projects/{self.project}"
        return f"{root}/regions/{self.region}/instanceTemplates/{template}"

    def _manager(self, zone: str, name: str) -> dict[str, Any]:
        group = self.groups[zone, name]
        versions = [{"instanceTemplate": self._link(group.template)}]
        return {"name": name, "zone": zone, "targetSize": group.target, "versions": versions}

    def _member(self, group: ManagedGroup, zone: str, name: str) -> dict[str, Any]:
        url = f"https://www.googleapis.com/compute/v1/projects/{self.project}/zones/{zone}/instances/{name}"
        if name in group.errors:
            code, message = group.errors[name]
            errors = {"errors": {"errors": [{"code": code, "message": message}]}}
            return {"instance": url, "name": name, "currentAction": "CREATING", "lastAttempt": errors}
        return {"instance": url, "name": name, "currentAction": group.members[name], "instanceStatus": "RUNNING"}


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
                "timeCreated": "2026-11-01T00:00:00+00:00",
            }
            self.made += 1


@dataclass
class Microsoft:
    """sets: (group of resources, name) -> scale set. page: machines and sets of one page."""

    sets: dict[tuple[str, str], Set] = field(default_factory=dict)
    page: int = 100
    url: str = ""
    secret: str = ""

    def add(self, group: str, name: str, tags: dict[str, str], size: int) -> Set:
        self.sets[group, name] = made = Set(tags, 0)
        made.resize(size)
        return made

    def answer(self, asked: Asked) -> Told:
        path, query = split(asked)
        if path.endswith("/oauth2/v2.0/token"):
            return self._token(asked)
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return told(401, {"error": {"code": "ExpiredAuthenticationToken", "message": "The access token expired."}})
        assert query["api-version"]
        kind = "providers/Microsoft.Compute/virtualMachineScaleSets"
        found = re.fullmatch(rf"/subscriptions/a-sub/resourceGroups/([\w-]+)/{kind}(?:/([\w-]+)(?:/(\w+))?)?", path)
        assert found, path
        group, name, what = found.groups()
        if name is None:
            return self._page(asked, [self._set(*key) for key in sorted(self.sets) if key[0] == group])
        scale_set = self.sets[group, name]
        match asked.method, what:
            case "GET", "virtualMachines":
                at = self._set(group, name)["id"]
                return self._page(asked, [_machine(at, *each) for each in sorted(scale_set.members.items())])
            case "GET", "instanceView":
                return told(200, {"statuses": scale_set.statuses})
            case "PATCH", None:
                scale_set.resize(json.loads(asked.body)["sku"]["capacity"])
                return told(200, self._set(group, name))
            case "POST", "delete":
                for number in json.loads(asked.body)["instanceIds"]:
                    if number not in scale_set.members:
                        return told(
                            404, {"error": {"code": "NotFound", "message": f"The instance {number} is not there"}}
                        )
                    del scale_set.members[number]
                    scale_set.capacity -= 1
                return Told(202, "")
        raise AssertionError(path)

    def _token(self, asked: Asked) -> Told:
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        if form.get("client_secret", form.get("client_assertion")) != self.secret:
            return told(
                401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}
            )
        return told(200, {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"})

    def _page(self, asked: Asked, items: list[Any]) -> Told:
        path, _, query = asked.path.partition("&$skiptoken=")
        start = int(query or 0)
        page: dict[str, Any] = {"value": items[start : start + self.page]}
        if start + self.page < len(items):
            page["nextLink"] = f"{self.url}{path}&$skiptoken={start + self.page}"
        return told(200, page)

    def _set(self, group: str, name: str) -> dict[str, Any]:
        found = self.sets[group, name]
        kind = "providers/Microsoft.Compute/virtualMachineScaleSets"
        return {
            "name": name,
            "id": f"/subscriptions/a-sub/resourceGroups/{group}/{kind}/{name}",
            "tags": found.tags,
            "sku": {"name": "Standard_D8s_v5", "tier": "Standard", "capacity": found.capacity},
            "properties": {"provisioningState": found.state},
        }


def _machine(at: str, number: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"{at}/virtualMachines/{number}", "instanceId": number, "zones": ["2"], "properties": properties}
