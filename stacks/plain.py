"""A stack under the ordinary Pulumi CLI: ``pulumi up -s <cluster>``, run in the folder of the checkout.

The stack's configuration file, Pulumi.<cluster>.yaml, holds secrets and names the spec if it is not the one with the
cluster's name. Everything else is in the spec.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi

from clients.access import STATE
from cluster.load import find_cluster, load_beside
from cluster.problems import Problem, SpecError
from cluster.spec import Cluster
from stacks import encryption, lean
from stacks.backend import refuse_second
from stacks.credentials import with_project
from stacks.errors import StackError
from stacks.program import declare

ALLOW_UNKNOWN = "MENAGERIE_ALLOW_UNKNOWN"
"""Variable equivalent to ``--allow-unknown``. Like the option it must be given for each run, so it is not configuration."""

_PATIENCE_S = 60
_SELF_HOSTED = "organization"
"""What the engine calls the organization of a stack that Pulumi Cloud does not keep."""

Refuse = Callable[[Cluster, Mapping[str, str]], None]
"""Takes the cluster and the environment, and raises `pulumi.RunError` if credentials or checksums are missing, or if Menagerie
knows why the run must not start."""


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
    _refuse_other_state(root, name)
    refuse(cluster, _environment())
    lean.in_a_process_of_its_own()
    pulumi.run(lean.program(lambda: declare(cluster)))


def is_given(variable: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a variable that stands for an option is set."""
    return environment.get(variable, "").lower() in ("1", "true", "yes")


def outputs(root: Path) -> dict[str, Any]:
    """Return the outputs that the selected stack has before this run, in clear, {} before the first `up`. Raises StackError.

    Asks the CLI on PATH rather than the engine: an invoke of the engine would add a provider to the state.
    """
    name, organization = pulumi.get_stack(), pulumi.get_organization()
    stack = name if organization in ("", _SELF_HOSTED) else f"{organization}/{pulumi.get_project()}/{name}"
    command = ["pulumi", "stack", "output", "--show-secrets", "--json", "--stack", stack, "--non-interactive"]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )
        if done.returncode == 0:
            stack_outputs: dict[str, Any] = json.loads(done.stdout)
            return stack_outputs
        why = done.stderr.strip().removeprefix("error: ") or done.stdout.strip()
    except FileNotFoundError:
        why = "pulumi is not on PATH"
    except subprocess.TimeoutExpired:
        why = f"no answer within {_PATIENCE_S} s"
    raise StackError(
        f"the outputs of {name} can't be read, so it is unknown whether an operation holds it. Nothing was changed. {why}\n"
        f"  to try the same: pulumi stack output --show-secrets --stack {stack} --non-interactive >/dev/null"
    )


def _refuse_other_state(root: Path, name: str) -> None:
    try:
        refuse_second(name, root / STATE.name / name, root, os.environ)
        encryption.refuse_other_than_the_fleets(root / f"Pulumi.{name}.yaml")
    except StackError as error:
        raise pulumi.RunError(str(error)) from None


def _cluster(root: Path, name: str) -> Cluster:
    """Load the cluster. Warnings are shown by the engine."""
    path = find_cluster(_spec(root) or name, root)
    loaded, problems = load_beside(path, root, allow_unknown=is_given(ALLOW_UNKNOWN))
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
