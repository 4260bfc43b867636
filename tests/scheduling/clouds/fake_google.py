"""A fake of Google's managed instance groups, tokens and metadata, following the documented HTTP APIs."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from tests.scheduling.clouds.door import Request, Response, json_response

TOKEN = "t0ken"
COMPUTE, TOKENS, METADATA = "compute.googleapis.com", "oauth2.googleapis.com", "metadata.google.internal"
_KINDS = {"resize": "compute.instanceGroupManagers.resize", "deleteInstances": "deleteInstances"}


def split(request: Request) -> tuple[str, dict[str, str]]:
    path, _, query = request.path.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


def refused(status: int, reason: str, message: str) -> Response:
    """Return an error in the format of API version 1 ("Error messages")."""
    error = {"message": message, "domain": "global", "reason": reason}
    return json_response(status, {"error": {"code": status, "message": message, "errors": [error]}})


@dataclass
class ManagedGroup:
    """A group. errors: name -> (code, message), for machines that could not be created."""

    template: str
    target: int
    members: dict[str, str] = field(default_factory=dict)
    errors: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass
class Google:
    """The fake. groups: (zone, name) -> group. templates: name -> labels. Raising a group's target adds numbered members.

    most: largest page, whatever is requested. tokens: accepted ones. failing: the error with which operations fail at once.
    """

    project: str = "a-project"
    region: str = "us-central1"
    most: int = 500
    groups: dict[tuple[str, str], ManagedGroup] = field(default_factory=dict)
    templates: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    failing: tuple[str, str] | None = None
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

    def answer(self, request: Request) -> Response:
        if request.host == TOKENS or request.path.endswith("/token"):
            return json_response(200, self.new_token())
        if request.host != COMPUTE:
            return Response(404, "not found")
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return refused(401, "authError", "Request had invalid authentication credentials.")
        path, query = split(request)
        root = f"/compute/v1/projects/{self.project}"
        if path == f"{root}/regions/{self.region}/instanceTemplates" and request.method == "GET":
            items = [self._template(name) for name in sorted(self.templates)]
            return self._page("compute#instanceTemplateList", "items", items, query)
        match = re.fullmatch(rf"{root}/zones/([\w-]+)/instanceGroupManagers(?:/([\w-]+)/(\w+))?", path)
        if not match:
            return refused(404, "notFound", f"The resource '{path}' was not found")
        zone, name, what = match.groups()
        if name is None and request.method == "GET":
            items = [self._manager(zone, each) for at, each in sorted(self.groups) if at == zone]
            return self._page("compute#instanceGroupManagerList", "items", items, query)
        assert request.method == "POST", request
        group = self.groups[zone, name]
        if what == "listManagedInstances":
            members = [self._member(group, zone, each) for each in sorted(group.members)]
            return self._page("", "managedInstances", members, query)
        return self._change(group, name, what, zone, query, request)

    def new_token(self) -> dict[str, Any]:
        token = f"{TOKEN}-{len(self.tokens)}"
        self.tokens.add(token)
        return {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}

    def _change(
        self, group: ManagedGroup, name: str, what: str, zone: str, query: dict[str, str], request: Request
    ) -> Response:
        done = self._operation(zone, name, what)
        if query["requestId"] in self.requests:
            return json_response(200, done)
        self.requests.add(query["requestId"])
        if self.failing:
            code, message = self.failing
            errors = {"errors": [{"code": code, "message": message}]}
            return json_response(
                200, {**done, "status": "DONE", "progress": 100, "error": errors, "httpErrorStatusCode": 403}
            )
        if what == "resize":
            self.resize(group, name, int(query["size"]))
            return json_response(200, done)
        assert what == "deleteInstances"
        body = json.loads(request.body)
        for url in body["instances"]:
            at, _, machine = url.removeprefix("zones/").partition("/instances/")
            if at != zone or machine not in group.members:
                assert body["skipInstancesOnValidationError"] is True
                continue
            del group.members[machine]
            group.target -= 1
        return json_response(200, done)

    def _operation(self, zone: str, name: str, what: str) -> dict[str, Any]:
        at = f"https://www.googleapis.com/compute/v1/projects/{self.project}/zones/{zone}"
        operation = f"operation-{1700000000000 + len(self.requests)}-0a1b2c3d"
        return {
            "kind": "compute#operation",
            "id": "6230184206530912345",
            "name": operation,
            "zone": at,
            "operationType": _KINDS[what],
            "targetLink": f"{at}/instanceGroupManagers/{name}",
            "targetId": "4873529601234567890",
            "status": "RUNNING",
            "user": "autoscaler@a-project.iam.gserviceaccount.com",
            "progress": 0,
            "insertTime": "2026-11-01T00:00:00.123-07:00",
            "startTime": "2026-11-01T00:00:00.456-07:00",
            "selfLink": f"{at}/operations/{operation}",
        }

    def _page(self, kind: str, key: str, items: list[Any], query: dict[str, str]) -> Response:
        start, most = int(query.get("pageToken", 0)), min(int(query["maxResults"]), self.most)
        page: dict[str, Any] = {"kind": kind, "id": "a-list"} if kind else {}
        if items:
            page[key] = items[start : start + most]
        elif kind:
            page["warning"] = {"code": "NO_RESULTS_ON_PAGE", "message": "There are no results", "data": []}
        if start + most < len(items):
            page["nextPageToken"] = str(start + most)
        return json_response(200, page)

    def _template(self, name: str) -> dict[str, Any]:
        properties = {"labels": self.templates[name], "machineType": "c3-standard-8", "canIpForward": True}
        return {
            "kind": "compute#instanceTemplate",
            "id": "1234567890123456789",
            "name": name,
            "selfLink": self._link(name),
            "properties": properties,
        }

    def _link(self, template: str) -> str:
        root = f"https://www.googleapis.com/compute/v1/projects/{self.project}"
        return f"{root}/regions/{self.region}/instanceTemplates/{template}"

    def _manager(self, zone: str, name: str) -> dict[str, Any]:
        group = self.groups[zone, name]
        return {
            "kind": "compute#instanceGroupManager",
            "id": "4873529601234567890",
            "name": name,
            "zone": f"https://www.googleapis.com/compute/v1/projects/{self.project}/zones/{zone}",
            "targetSize": group.target,
            "versions": [{"instanceTemplate": self._link(group.template), "targetSize": {"calculated": group.target}}],
            "status": {"isStable": True},
        }

    def _member(self, group: ManagedGroup, zone: str, name: str) -> dict[str, Any]:
        url = f"https://www.googleapis.com/compute/v1/projects/{self.project}/zones/{zone}/instances/{name}"
        if name in group.errors:
            code, message = group.errors[name]
            errors = {"errors": {"errors": [{"code": code, "message": message}]}}
            return {"instance": url, "name": name, "currentAction": "CREATING", "lastAttempt": errors}
        return {"instance": url, "name": name, "currentAction": group.members[name], "instanceStatus": "RUNNING"}
