"""A stack under the ordinary Pulumi CLI: ``pulumi up -s <cluster>``, run in the folder of the checkout.

The stack's configuration file, Pulumi.<cluster>.yaml, holds secrets and names the spec if it is not the one with the
cluster's name. Everything else is in the spec.
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
"""Variable equivalent to ``--allow-unknown``. Like the option it must be given for each run, so it is not configuration."""

Refuse = Callable[[Cluster, Mapping[str, str]], None]
"""Takes the cluster and the environment, and raises `pulumi.RunError` if credentials or checksums are missing."""


def main(root: Path, refuse: Refuse) -> None:
    """Declare the cluster of the selected stack. root: the folder of the checkout."""
    name = pulumi.get_stack()
    try:
        cluster = _cluster(root, name)
    except SpecError as error:
        raise pulumi.RunError(f"the spec of {name} is refused:\n{error}") from None
    if cluster.name != name:
        raise pulumi.RunError(
            f"the spec describes {cluster.name}, so its stack must have that name; this stack is {name}"
        )
    if cluster.is_lab:
        # With the state of another backend it would create new keys besides those of the running lab.
        raise pulumi.RunError(f"{name} is a lab, whose state is in the checkout; run: ./menagerie up {name}")
    refuse(cluster, _environment())
    lean.in_a_process_of_its_own()
    pulumi.run(lean.program(lambda: declare(cluster)))


def _cluster(root: Path, name: str) -> Cluster:
    """Load the cluster. Warnings are shown by the engine."""
    allow = os.environ.get(ALLOW_UNKNOWN, "").lower() in ("1", "true", "yes")
    path = find_cluster(_spec(root) or name, root)
    loaded, problems = load_beside(path, root, allow_unknown=allow)
    if loaded is None:
        raise SpecError([_with_variable(problem) for problem in problems])
    for problem in problems:
        pulumi.log.warn(str(problem))
    return loaded.cluster


def _spec(root: Path) -> str:
    """Return the spec that the stack's configuration names, relative to the checkout, "" for none."""
    given = pulumi.Config().get("spec")
    return str(root / given) if given else ""


def _with_variable(problem: Problem) -> Problem:
    """Return the problem with a hint that works with this CLI."""
    hint = problem.hint.replace("--allow-unknown", f"{ALLOW_UNKNOWN}=1 pulumi up")
    return Problem(**{**vars(problem), "hint": hint})


def _environment() -> Mapping[str, str]:
    """Return the provider's environment, with a Google Cloud project from the stack's configuration."""
    return with_project(os.environ, pulumi.Config("gcp").get("project"))
