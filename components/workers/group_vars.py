"""Extra variables of a cluster, ``inventories/<cluster>/group_vars/<group>.yml``, and the variables that roles declare.

They apply to workers at sites (through Ansible), to workers of pools in the region (through their payload), and to edge routers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster.document import Document, read
from cluster.fields import did_you_mean, near
from cluster.problems import Problem, SpecError
from cluster.project import ROOT, TOOLKIT
from cluster.spec import Cluster

Groups = Mapping[str, Mapping[str, Any]]
"""Group -> its extra variables, as in ``group_vars/<group>.yml``."""
FOLDER = "group_vars"
# Ansible's connection variables, and those of site.yml.
_FREE = re.compile(r"(ansible|menagerie)_[a-z0-9_]{1,80}")
_OF_ROUTERS = frozenset({"vpn_gateway"})
"""Roles of gateways.yml, which workers don't get."""
ROUTERS = "gateways"
"""The group of edge routers. Besides `all`, they are in no other group."""


def group_name(kind: str, *names: str) -> str:
    """Return the name of a group: pool, gpu-a -> pool_gpu_a. Ansible requires group names to be Python identifiers."""
    return "_".join((kind, *names)).replace("-", "_")


def pools_in_region(cluster: Cluster) -> tuple[str, ...]:
    """Return the groups of pools in the region."""
    return tuple(group_name("pool", name) for name, pool in cluster.spec.pools.items() if pool.site is None)


def operator_variables(
    cluster: Cluster, at_sites: Collection[str] | None = None, root: Path = ROOT
) -> dict[str, dict[str, Any]]:
    """Return the operator's variables for the cluster's workers: group -> variables. Raises SpecError as `read_variables` does.

    at_sites: groups of workers at sites, from Ansible's inventory. If given, a file for an unknown group is an error.
    """
    known = frozenset[str]().union(*declared(TOOLKIT).values())
    groups = None if at_sites is None else {*at_sites, *pools_in_region(cluster)}
    return read_variables(root / "inventories" / cluster.name, groups, known)


def given_to_routers(cluster: Cluster, computed: Collection[str], root: Path = ROOT) -> dict[str, Any]:
    """Return the operator's variables for the cluster's edge routers: from ``all.yml`` those of their role, and ``gateways.yml``,
    which wins.

    computed: variables of their role that come from specs, which the files must not set. Raises SpecError as `read_variables`
    does, and for those.
    """
    folder, own = root / "inventories" / cluster.name, _of_routers(TOOLKIT)
    problems: list[Problem] = []
    variables: dict[str, Any] = {}
    for group in ("all", ROUTERS):
        for path in _files(folder, group):
            document = read(path, str(path))
            problems += document.problems
            data = document.data or {}
            problems += _unknown(document, own) if group == ROUTERS else []
            for name in computed:
                if name in data:
                    message = f"{name} is computed from the specs of the clusters that a router joins"
                    problems.append(
                        document.problem("CFG-001", (name,), message, "remove it; change the spec", key=True)
                    )
            variables |= {name: value for name, value in data.items() if name in own or _FREE.fullmatch(str(name))}
    if problems:
        raise SpecError(problems)
    return variables


def _of_routers(root: Path) -> frozenset[str]:
    return frozenset[str]().union(*(_options(root, role) for role in _OF_ROUTERS))


def roles(root: Path) -> tuple[str, ...]:
    """Return the names of the roles of workers under ``<root>/roles``, sorted."""
    names = {path.parent.parent.name for path in root.glob("roles/*/tasks/main.yml")}
    return tuple(sorted(names - _OF_ROUTERS))


def declared(root: Path) -> dict[str, frozenset[str]]:
    """Return role -> the variables of its ``meta/argument_specs.yml``."""
    return {role: _options(root, role) for role in roles(root)}


def _options(root: Path, role: str) -> frozenset[str]:
    name = f"roles/{role}/meta/argument_specs.yml"
    return frozenset(read(root / name, name).data["argument_specs"]["main"]["options"])


def _files(folder: Path, group: str = "*") -> list[Path]:
    return sorted((folder / FOLDER).glob(f"{group}.y*ml"))


def read_variables(folder: Path, groups: Collection[str] | None, known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return group -> variables, from every file in ``<folder>/group_vars`` except the routers'; empty without that folder.

    groups: names that files may have besides all; None for any. known: variables that the roles declare. ``all.yml`` may also
    have those of routers.

    Raises SpecError with all problems in all files. A variable that no role reads is one: it would silently change nothing.
    """
    allowed = sorted({"all", ROUTERS, *(groups or ())})
    problems: list[Problem] = []
    variables: dict[str, dict[str, Any]] = {}
    of_routers = _of_routers(TOOLKIT)
    for path in _files(folder):
        if path.stem == ROUTERS:
            continue
        document = read(path, str(path))
        problems += document.problems
        if groups is not None and path.stem not in allowed:
            message = f"there is no group {path.stem}{did_you_mean(path.stem, allowed)}"
            hint = f"name the file after one of: {', '.join(allowed)}"
            problems.append(Problem("CFG-001", message, hint, str(path)))
        problems += _unknown(
            document, frozenset(known) | (of_routers if path.stem == "all" else frozenset()), of_routers
        )
        variables[path.stem] = document.data or {}
    if problems:
        raise SpecError(problems)
    return variables


def _unknown(document: Document, known: Collection[str], of_routers: Collection[str] = ()) -> Iterator[Problem]:
    """Yield a problem for each variable that no role reads in this file."""
    for name in document.data or {}:
        if name in known or _FREE.fullmatch(str(name)):
            continue
        close = near(name, known)
        message = f"no role has a variable {name}{did_you_mean(name, known)}"
        hint = f"write {close[0]}" if close else "remove it; the roles' README files list their variables"
        if name in of_routers:
            message, hint = f"{name} is for edge routers, and this group has none", f"write it in {ROUTERS}.yml"
        yield document.problem("CFG-001", (name,), message, hint, key=True)
