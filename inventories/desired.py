"""The state that each host is wanted in, as a digest: what the journal compares. No secret can be read from it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from components.workers.group_vars import roles
from inventories.build import Inventory

# New for each run, or a place on the operator's machine: nothing of them ends on a host.
_PASSING = ("kubelet_token", "ansible_ssh_private_key_file", "ansible_ssh_common_args")
_SHARED = ("site.yml", "ansible.cfg", "roles/modules", "roles/module_utils", "roles/lookups")
_LENGTH = 24

Digests = dict[str, str]
"""Role -> digest of what it is told and of what it does."""


def desired(
    inventory: Inventory, root: Path, tags: Sequence[str] = (), hosts: Collection[str] = ()
) -> dict[str, Digests]:
    """Host -> the state that a run with these tags brings it to. hosts: only of these.

    A host's variables are resolved as Ansible does: those of all, then of its groups in order of their names, which are
    all of one depth, then its own; a later value replaces an earlier one whole.
    """
    whole = inventory.data["all"]
    made = _of_roles(root, tags)
    groups = _groups(inventory)
    shared: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}
    found = {}
    for host in hosts or inventory.hosts:
        own = {name: value for name, value in whole["hosts"][host].items() if name not in _PASSING}
        key = groups.get(host, ()), tuple(own)
        if key not in shared:
            merged = dict(whole["vars"])
            for group in key[0]:
                merged |= whole["children"][group].get("vars", {})
            shared[key] = _digest({name: value for name, value in merged.items() if name not in (*_PASSING, *own)})
        told = shared[key] + json.dumps(own, sort_keys=True, default=str) + host
        found[host] = {role: _hashed(f"{does}{told}") for role, does in made.items()}
    return found


def _groups(inventory: Inventory) -> Mapping[str, tuple[str, ...]]:
    """Host -> its groups, in the order in which their variables count."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, hosts in sorted(inventory.groups.items()):
        for host in hosts:
            found[host].append(name)
    return {host: tuple(names) for host, names in found.items()}


def _of_roles(root: Path, tags: Sequence[str]) -> Digests:
    """Role -> digest of its files and of what all roles share."""
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
