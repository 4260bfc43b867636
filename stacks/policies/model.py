"""Resources as rules see them, and violations that rules report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cluster.spec import Cluster

SECRET = "[secret]"
"""Replaces a value that the engine keeps encrypted."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Resource:
    """One resource of a stack; components and providers are resources too.

    type: Pulumi's token, without an API version. name: as in the program. parent: URN, "" for none.
    inputs, outputs: plain JSON values under the engine's names (camelCase), with `SECRET` for secrets.
    """

    type: str
    name: str
    urn: str
    parent: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    protect: bool = False


@dataclass(frozen=True)
class Violation:
    """A rule that a resource breaks. way_out: one sentence, what to write in the program or the spec.

    path: in the spec, if only the spec is wrong; the resource is then `of_spec`.
    """

    rule: str
    resource: Resource
    message: str
    way_out: str
    severity: Severity = "error"
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """id: a word for machines, which never changes. says: what must hold, as one sentence.

    because: facts behind the rule, with their source; "" if there is nothing to add.
    """

    id: str
    says: str
    violations: Callable[[Cluster, Sequence[Resource]], Iterable[Violation]]
    because: str = ""


def of_spec(cluster: Cluster) -> Resource:
    """Return a stand-in for the spec, for violations without a resource: it has no URN."""
    return Resource("menagerie:spec", cluster.name, "")
