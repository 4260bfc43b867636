"""Values that Ansible takes as they are: no text of a spec, of group_vars or of a stack is ever a template.

ansible-core 2.19 evaluates what it has from trusted files alone, and takes an inventory in YAML or JSON for one. A value in the
form ``{"__ansible_unsafe": text}`` is read from it without that trust (ansible._internal._json._profiles._legacy). Roles'
own texts stay templates. Keys can't be marked; names of hosts, groups and variables have patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def untrusted(value: Any) -> Any:
    """The same with every text in it marked, however deep."""
    if isinstance(value, str):
        # str(): an enumeration's member is a text too, and JSON has no other.
        return {"__ansible_unsafe": str(value)}
    if isinstance(value, Mapping):
        return {key: untrusted(each) for key, each in value.items()}
    return [untrusted(each) for each in value] if isinstance(value, list | tuple) else value


def untrusted_inventory(data: Mapping[str, Any]) -> dict[str, Any]:
    """An inventory in Ansible's own form, with every variable's value marked."""
    found: dict[str, Any] = {}
    for group, parts in data.items():
        hosts = {host: untrusted(values) for host, values in parts.get("hosts", {}).items()}
        children = untrusted_inventory(parts.get("children", {}))
        found[group] = {"vars": untrusted(parts.get("vars", {})), "hosts": hosts, "children": children}
    return found
