"""Resources as rows: resources that comply with a rule, and changes that break it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster.spec import Cluster
from stacks import policies
from stacks.policies.model import Resource, Rule, Violation

REGIONS = {"aws": "us-east-1", "azure": "eastus2", "gcp": "us-central1"}
ZONES = {
    "aws": ["us-east-1a", "us-east-1b", "us-east-1c"],
    "azure": [1, 2, 3],
    "gcp": ["us-central1-a", "us-central1-b", "us-central1-c"],
}


def resource(type_: str, inputs: Mapping[str, Any] | None = None, name: str = "it", **more: Any) -> Resource:
    """Return a resource. more: other fields."""
    return Resource(type_, name, f"urn:pulumi:s::p::{type_}::{name}", "", inputs or {}, **more)


@dataclass(frozen=True)
class Case:
    """kept: resources that comply with the rule. wrong: changes of the last one's inputs, path -> value, each of which
    breaks it; None removes the value."""

    rule: str
    kept: tuple[Resource, ...]
    wrong: tuple[Mapping[str, Any], ...]

    @property
    def cloud(self) -> str:
        return cloud_of(self.kept[-1])


def cloud_of(resource_: Resource) -> str:
    return resource_.type.partition(":")[0].partition("-")[0]


def rule(id_: str) -> Rule:
    (match,) = (candidate for candidate in policies.RULES if candidate.id == id_)
    return match


def broken(id_: str, cluster: Cluster, resources: tuple[Resource, ...]) -> list[Violation]:
    return list(rule(id_).violations(cluster, resources))


def changed(original: Resource, changes: Mapping[str, Any]) -> Resource:
    """Return the resource with other inputs; ``a[].b`` is b of the first element of a."""
    inputs = copy.deepcopy(dict(original.inputs))
    for path, value in changes.items():
        *way, last = path.split(".")
        place: Any = inputs
        for name in way:
            place = place[name.removesuffix("[]")]
            place = place[0] if name.endswith("[]") else place
        if value is None:
            place.pop(last)
        else:
            place[last] = value
    return replace(original, inputs=inputs)
