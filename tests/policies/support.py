"""Resources as rows: one that keeps a rule, and changes of it that break the rule."""

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
    """more: other fields of a resource."""
    return Resource(type_, name, f"urn:pulumi:s::p::{type_}::{name}", "", inputs or {}, **more)


@dataclass(frozen=True)
class Case:
    """kept: resources that keep the rule. wrong: changes of the last one's inputs, path -> value, each of which breaks
    it; None takes the value away."""

    rule: str
    kept: tuple[Resource, ...]
    wrong: tuple[Mapping[str, Any], ...]

    @property
    def cloud(self) -> str:
        return cloud_of(self.kept[-1])


def cloud_of(one: Resource) -> str:
    return one.type.partition(":")[0].partition("-")[0]


def rule(id_: str) -> Rule:
    (found,) = (each for each in policies.RULES if each.id == id_)
    return found


def broken(id_: str, cluster: Cluster, resources: tuple[Resource, ...]) -> list[Violation]:
    return list(rule(id_).violations(cluster, resources))


def changed(one: Resource, changes: Mapping[str, Any]) -> Resource:
    """With other inputs; ``a[].b`` is b of the first of a."""
    inputs = copy.deepcopy(dict(one.inputs))
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
    return replace(one, inputs=inputs)
