"""A project of Google Cloud that follows the documented HTTP of its APIs."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from stacks.gcp import hosts
from tests.scheduling.clouds.door import Request, Response, json_response
from tests.scheduling.clouds.fake_google import refused, split

ZONES = tuple(f"us-central1-{letter}" for letter in "abc")
PROJECT = "a-project"
DEBIAN = hosts.image(None, "c3-standard-4").rpartition("/")[2]
"""The family of the default image."""


def quota(metric: str, limit: float, used: float = 0) -> dict[str, Any]:
    return {"metric": metric, "limit": limit, "usage": used}


@dataclass
class Project:
    """The fake. lacking: permissions that the caller lacks. off: services that are not enabled. taken: buckets and networks.

    elsewhere: buckets of other projects. absent: (zone, machine type) that is not offered. deleted: IDs of deleted roles.
    """

    state: str = "ACTIVE"
    lacking: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    quotas: list[dict[str, Any]] = field(default_factory=lambda: [quota("CPUS", 72), quota("C3_CPUS", 200)])
    common: list[dict[str, Any]] = field(
        default_factory=lambda: [quota("CPUS_ALL_REGIONS", 2000), quota("NETWORKS", 15, 2)]
    )
    absent: set[tuple[str, str]] = field(default_factory=set)
    architecture: str = "X86_64"
    images: dict[str, str] = field(default_factory=lambda: {DEBIAN: "READY"})
    taken: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=lambda: {"t0ken"})

    def answer(self, request: Request) -> Response:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return refused(401, "authError", "Request had invalid authentication credentials.")
        path, _ = split(request)
        match request.host.removesuffix(".googleapis.com"):
            case "cloudresourcemanager":
                return self._manager(request, path)
            case "serviceusage":
                return self._services(request)
            case "compute":
                return self._compute(path.removeprefix("/compute/v1/projects/"))
            case "storage":
                return self._bucket(path.rpartition("/")[2])
            case "iam":
                return self._role(path.rpartition("/")[2])
        raise AssertionError(request)

    def _manager(self, request: Request, path: str) -> Response:
        if path == f"/v3/projects/{PROJECT}":
            return json_response(200, {"name": "projects/1", "projectId": PROJECT, "state": self.state})
        assert (request.method, path) == ("POST", f"/v3/projects/{PROJECT}:testIamPermissions"), request
        asked = json.loads(request.body)["permissions"]
        assert len(asked) <= 100
        granted = [each for each in asked if each not in self.lacking]
        return json_response(200, {"permissions": granted} if granted else {})

    def _services(self, request: Request) -> Response:
        query = urllib.parse.parse_qs(request.path.partition("?")[2])
        assert len(query["names"]) <= 30, "services:batchGet takes at most 30 names"
        states = [
            {"name": each, "state": "DISABLED" if each.rpartition("/")[2] in self.off else "ENABLED"}
            for each in query["names"]
        ]
        return json_response(200, {"services": states})

    def _compute(self, path: str) -> Response:
        project, _, rest = path.partition("/")
        if rest == "":
            return json_response(200, {"name": project, "quotas": self.common})
        if rest == "regions/us-central1":
            return json_response(200, {"name": "us-central1", "quotas": self.quotas})
        place, name = re.fullmatch(r"zones/([\w-]+)(?:/machineTypes/([\w-]+))?", rest), rest.rpartition("/")[2]
        if place and place[1] in ZONES and place.groups() not in self.absent:
            return json_response(200, {"name": name, "status": "UP"})
        if rest.startswith("global/images/") and name in self.images:
            image = {"name": f"{name}-v20261101", "status": self.images[name], "architecture": self.architecture}
            return json_response(200, image)
        if rest.startswith("global/networks/") and name in self.taken:
            return json_response(200, {"name": name})
        return refused(404, "notFound", f"The resource 'projects/{path}' was not found")

    def _bucket(self, name: str) -> Response:
        if name in self.elsewhere:
            return refused(403, "forbidden", f"caller does not have storage.buckets.get access to {name}")
        if name in self.taken:
            return json_response(200, {"name": name})
        return refused(404, "notFound", "The specified bucket does not exist.")

    def _role(self, name: str) -> Response:
        if name in self.deleted:
            return json_response(200, {"name": f"projects/{PROJECT}/roles/{name}", "deleted": True})
        return refused(404, "NOT_FOUND", f"The role named projects/{PROJECT}/roles/{name} was not found.")
