"""A stack under the ordinary Pulumi CLI: ``pulumi up -s <cluster>``, from the folder of the checkout.

The file of the stack's configuration, Pulumi.<cluster>.yaml, says which spec is meant where it is not the one of that
name, and holds secrets. All else is in the spec.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pulumi

from cluster.load import find_cluster, load_beside
from cluster.problems import Problem, SpecError
from cluster.spec import Cluster
from stacks import lean
from stacks.credentials import with_project
from stacks.program import declare

ALLOW_UNKNOWN = "MENAGERIE_ALLOW_UNKNOWN"
"""Variable that stands for ``--allow-unknown``. As that, it is to be said anew for each run, so it is no configuration."""

Refuse = Callable[[Cluster, Mapping[str, str]], None]
"""Sees the cluster and the environment, and raises `pulumi.RunError` where credentials or checksums are missing."""


def main(root: Path, refuse: Refuse) -> None:
    """Declare the cluster whose stack was chosen. root: the folder of the checkout."""
    name = pulumi.get_stack()
    try:
        cluster = _cluster(root, name)
    except SpecError as error:
        raise pulumi.RunError(f"the spec of {name} is refused:\n{error}") from None
    if cluster.name != name:
        raise pulumi.RunError(f"the spec is that of {cluster.name}; its stack must have that name, and this is {name}")
    if cluster.is_lab:
        # With another backend's state it would make new keys beside those of the running lab.
        raise pulumi.RunError(f"{name} is a lab, whose state lies in the checkout; run: ./menagerie up {name}")
    refuse(cluster, _environment())
    lean.in_a_process_of_its_own()
    pulumi.run(lean.program(lambda: declare(cluster)))


def _cluster(root: Path, name: str) -> Cluster:
    """Warnings go where the engine shows them."""
    allow = os.environ.get(ALLOW_UNKNOWN, "").lower() in ("1", "true", "yes")
    path = find_cluster(_spec(root) or name, root)
    loaded, problems = load_beside(path, root, allow_unknown=allow)
    if loaded is None:
        raise SpecError([_with_variable(problem) for problem in problems])
    for problem in problems:
        pulumi.log.warn(str(problem))
    return loaded.cluster


def _spec(root: Path) -> str:
    """The spec that the stack's configuration names, from the folder of the checkout."""
    given = pulumi.Config().get("spec")
    return str(root / given) if given else ""


def _with_variable(problem: Problem) -> Problem:
    """With the way out that this CLI has."""
    hint = problem.hint.replace("--allow-unknown", f"{ALLOW_UNKNOWN}=1 pulumi up")
    return Problem(**{**vars(problem), "hint": hint})


def _environment() -> Mapping[str, str]:
    """That of the provider, which takes a project of Google Cloud from the stack's configuration too."""
    return with_project(os.environ, pulumi.Config("gcp").get("project"))
