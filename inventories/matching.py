"""INV-006: --limit or --tags matches nothing, or the inventory has no hosts.

For ansible-playbook a run without hosts is a success; here it is an error, reported before the run.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cluster.errors import RefusedError
from cluster.fields import did_you_mean, near
from cluster.problems import Problem
from components.workers.group_vars import roles
from inventories.build import Inventory

CODE = "INV-006"
_SHOWN = 3
_ARGUMENTS = "Validating arguments against arg spec"
"""Start of the name of Ansible's task that checks the arguments of a role (ansible.playbook.role)."""


def nothing_matches(problems: Sequence[Problem]) -> RefusedError:
    """Return the error for a run that would touch no host, or fewer than requested. problems: why."""
    return RefusedError("\n".join(map(str, problems)), code="nothing-matches", problems=problems)


def limited(inventory: Inventory, limit: str | None) -> tuple[str, ...]:
    """Return the hosts that a run with this --limit touches, in the inventory's order.

    Patterns are those of Ansible: names, groups, globs, ``~regex``, ``!excluded`` and ``&intersected``,
    separated by commas or colons.

    Errors: raises RefusedError for an inventory without hosts, for patterns that match nothing, and if no host is left.
    """
    if not inventory.hosts:
        hint = "list machines in a pool's hosts file and give the pool a site"
        raise nothing_matches(
            [Problem(CODE, f"cluster {inventory.cluster} has no machines at a site", hint, inventory.cluster)]
        )
    if limit is None:
        return inventory.hosts
    patterns = [part for part in re.split(r"[,:]", limit) if part]
    matches = {pattern: _matching(inventory, pattern.lstrip("!&")) for pattern in patterns}
    problems = [_unmatched(inventory, pattern.lstrip("!&")) for pattern, hosts in matches.items() if not hosts]
    if problems:
        raise nothing_matches(problems)
    plain = [hosts for pattern, hosts in matches.items() if pattern[0] not in "!&"]
    chosen = set().union(*plain) if plain else set(inventory.hosts)
    for pattern, hosts in matches.items():
        if pattern[0] == "&":
            chosen &= hosts
        elif pattern[0] == "!":
            chosen -= hosts
    if not chosen:
        hint = "remove one of its patterns"
        raise nothing_matches([Problem(CODE, f'--limit "{limit}" leaves no host', hint, inventory.cluster)])
    return tuple(host for host in inventory.hosts if host in chosen)


def check_tags(tags: Sequence[str], known: Iterable[str]) -> None:
    """Raise RefusedError if any tag is one that no task has."""
    names = sorted(known)
    problems = [
        Problem(
            CODE, f'no task has tag "{tag}"{did_you_mean(tag, names)}', f"use one of: {', '.join(names)}", "site.yml"
        )
        for tag in tags
        if tag not in names
    ]
    if problems:
        raise nothing_matches(problems)


class Last(NamedTuple):
    """The last task of a host in a run. task: "" for the check of the role's arguments."""

    role: str
    task: str

    def is_it(self, role: str, task: str) -> bool:
        return role == self.role and (task == self.task if self.task else task.startswith(_ARGUMENTS))


def last_task(root: Path, tags: Sequence[str]) -> Last | None:
    """Return the last task of a run with these tags; None if site.yml doesn't end with a role."""
    play = yaml.safe_load((root / "site.yml").read_text())[-1]
    entries = play.get("roles") or ()
    if not entries or play.get("tasks") or play.get("post_tasks"):
        return None
    role = str(entries[-1]["role"] if isinstance(entries[-1], Mapping) else entries[-1])
    if tags and role not in tags:
        return Last(role, "") if (root / "roles" / role / "meta" / "argument_specs.yml").exists() else None
    tasks = list(_leaves(_task_list(root, role)))
    return Last(role, str(tasks[-1]["name"])) if tasks and "name" in tasks[-1] else None


def planned_tasks(root: Path, tags: Sequence[str]) -> int:
    """Return the number of tasks per host in a run with these tags.

    Ansible checks the arguments of every role regardless of tags, which is one task per role.
    """
    all_roles = roles(root)
    chosen = [role for role in all_roles if not tags or role in tags]
    return len(all_roles) + sum(1 for role in chosen for _ in _leaves(_task_list(root, role)))


def _task_list(root: Path, role: str) -> list[Mapping[str, Any]]:
    loaded: list[Mapping[str, Any]] | None = yaml.safe_load((root / "roles" / role / "tasks" / "main.yml").read_text())
    return loaded or []


def _leaves(tasks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for task in tasks:
        if "block" in task:
            yield from _leaves(task["block"])
        else:
            yield task


def _matching(inventory: Inventory, pattern: str) -> set[str]:
    names = {**{host: (host,) for host in inventory.hosts}, **inventory.groups, "all": inventory.hosts}
    if pattern.startswith("~"):
        try:
            expression = re.compile(pattern[1:])
        except re.error as error:
            message = f"--limit {pattern} isn't a regular expression: {error}"
            raise nothing_matches([Problem(CODE, message, file=inventory.cluster)]) from None
        groups = [hosts for name, hosts in names.items() if expression.search(name)]
    else:
        groups = [hosts for name, hosts in names.items() if fnmatch.fnmatchcase(name, pattern)]
    return {host for hosts in groups for host in hosts}


def _unmatched(inventory: Inventory, pattern: str) -> Problem:
    close = near(pattern, [*inventory.hosts, *inventory.groups])
    message = f"--limit {pattern} matches no host; {_summary(sorted(inventory.hosts))}"
    hint = f"write {close[0]}" if close else f"groups are {', '.join(sorted(inventory.groups))}"
    return Problem(CODE, message, hint, inventory.cluster)


def _summary(hosts: Sequence[str]) -> str:
    """List a few hosts by name, many by the first and the last."""
    if len(hosts) <= _SHOWN:
        return f"hosts are {', '.join(hosts)}"
    return f"hosts are {hosts[0]} … {hosts[-1]}, {len(hosts)} in all"
