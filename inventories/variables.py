"""The further variables of a cluster, ``inventories/<cluster>/group_vars/<group>.yml``, and what roles declare."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from cluster.document import read
from cluster.fields import did_you_mean, near
from cluster.problems import Problem, SpecError

FOLDER = "group_vars"
# Ansible's own connection variables, and those of site.yml.
_PREFIXES = ("ansible_", "menagerie_")


def roles(root: Path) -> tuple[str, ...]:
    """The roles under ``<root>/roles``, by name."""
    return tuple(sorted(path.parent.parent.name for path in root.glob("roles/*/tasks/main.yml")))


def declared(root: Path) -> dict[str, frozenset[str]]:
    """Role -> the variables of its ``meta/argument_specs.yml``."""
    found = {}
    for role in roles(root):
        name = f"roles/{role}/meta/argument_specs.yml"
        found[role] = frozenset(read(root / name, name).data["argument_specs"]["main"]["options"])
    return found


def read_variables(folder: Path, groups: Collection[str], known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Group -> variables, of every file in ``<folder>/group_vars``; empty without that folder.

    groups: names a file may have, besides all. known: variables that the roles declare.

    Raises SpecError with everything wrong in all files: a variable that no role reads would change
    nothing, silently.
    """
    allowed = sorted({"all", *groups})
    problems: list[Problem] = []
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / FOLDER).glob("*.y*ml")):
        document = read(path, str(path))
        problems += document.problems
        if path.stem not in allowed:
            message = f"there is no group {path.stem}{did_you_mean(path.stem, allowed)}"
            hint = f"name the file after one of: {', '.join(allowed)}"
            problems.append(Problem("CFG-001", message, hint, str(path)))
        for name in document.data or {}:
            if name not in known and not name.startswith(_PREFIXES):
                message = f"no role has a variable {name}{did_you_mean(name, known)}"
                close = near(name, known)
                hint = f"write {close[0]}" if close else "remove it; the roles' README files list their variables"
                problems.append(document.problem("CFG-001", (name,), message, hint, key=True))
        found[path.stem] = document.data or {}
    if problems:
        raise SpecError(problems)
    return found
