"""Mark values so that Ansible doesn't treat them as templates: texts of a spec, of group_vars or of a stack.

ansible-core 2.19 evaluates templates only from trusted files, which include an inventory in YAML or JSON. A value in the
form ``{"__ansible_unsafe": text}`` isn't trusted (ansible._internal._json._profiles._legacy). Texts in roles are still
templates. Keys can't be marked, but names of hosts, groups and variables must match patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def untrusted(value: Any) -> Any:
    """Return the value with every text in it marked, at any depth."""
    if isinstance(value, str):
        # str(): members of enumerations are texts too, and JSON has only plain ones.
        return {"__ansible_unsafe": str(value)}
    if isinstance(value, Mapping):
        return {key: untrusted(inner) for key, inner in value.items()}
    return [untrusted(inner) for inner in value] if isinstance(value, list | tuple) else value


def untrusted_inventory(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an inventory in Ansible's form with every variable's value marked."""
    marked: dict[str, Any] = {}
    for group, parts in data.items():
        hosts = {host: untrusted(values) for host, values in parts.get("hosts", {}).items()}
        children = untrusted_inventory(parts.get("children", {}))
        marked[group] = {"vars": untrusted(parts.get("vars", {})), "hosts": hosts, "children": children}
    return marked
