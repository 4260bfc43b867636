"""Desired states of hosts as digests, which the journal compares. They reveal no secrets."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from components.workers.group_vars import roles
from inventories.build import Inventory

# Different for each run, or paths on the operator's machine: they have no effect on hosts.
_PASSING = ("kubelet_token", "ansible_ssh_private_key_file", "ansible_ssh_common_args")
_SHARED = ("site.yml", "ansible.cfg", "roles/modules", "roles/module_utils", "roles/lookups")
_LENGTH = 24

Digests = dict[str, str]
"""Role -> digest of its variables and its files."""


def desired(
    inventory: Inventory, root: Path, tags: Sequence[str] = (), hosts: Collection[str] = ()
) -> dict[str, Digests]:
    """Return for each host the state after a run with these tags. hosts: only for these.

    A host's variables are resolved as in Ansible: those of all, then of its groups in order of their names (all have the
    same depth), then its own. A later value completely replaces an earlier one.
    """
    everything = inventory.data["all"]
    of_roles = _of_roles(root, tags)
    groups = _groups(inventory)
    shared: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}
    states = {}
    for host in hosts or inventory.hosts:
        own = {name: value for name, value in everything["hosts"][host].items() if name not in _PASSING}
        key = groups.get(host, ()), tuple(own)
        if key not in shared:
            merged = dict(everything["vars"])
            for group in key[0]:
                merged |= everything["children"][group].get("vars", {})
            shared[key] = _digest({name: value for name, value in merged.items() if name not in (*_PASSING, *own)})
        variables = shared[key] + json.dumps(own, sort_keys=True, default=str) + host
        states[host] = {role: _hashed(f"{files}{variables}") for role, files in of_roles.items()}
    return states


def _groups(inventory: Inventory) -> Mapping[str, tuple[str, ...]]:
    """Map each host to its groups, in the order of precedence of their variables."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, hosts in sorted(inventory.groups.items()):
        for host in hosts:
            groups[host].append(name)
    return {host: tuple(names) for host, names in groups.items()}


def _of_roles(root: Path, tags: Sequence[str]) -> Digests:
    """Map each role to the digest of its files and of files that all roles share."""
    shared = _of_files(root, (path for name in _SHARED for path in _files(root / name)))
    return {
        role: shared + _of_files(root, _files(root / "roles" / role))
        for role in roles(root)
        if not tags or role in tags
    }


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.rglob("*") if each.is_file() and each.suffix not in (".pyc", ".md"))


def _of_files(root: Path, paths: Iterable[Path]) -> str:
    return _digest([(str(path.relative_to(root)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths])


def _digest(value: Any) -> str:
    return _hashed(json.dumps(value, sort_keys=True, default=str))


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
