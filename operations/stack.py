"""A cluster's Pulumi stack, opened with what this checkout provides: the CLI, the state's place."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from cluster import versions
from cluster.fields import did_you_mean
from cluster.spec import Cluster
from operations.access import ROOT, STATE, Access
from stacks.automation import ClusterStack
from stacks.credentials import with_project
from stacks.program import declare
from tools.build import ensure


class NoKeyError(Exception):
    """A secret is not kept yet."""


class UnknownSecretError(Exception):
    """The spec names no such secret."""

    def __init__(self, cluster: str, name: str, known: tuple[str, ...]) -> None:
        there = f"there are: {', '.join(known)}" if known else "it names none"
        super().__init__(f"the spec of {cluster} names no secret {name}{did_you_mean(name, known)}; {there}")


def open_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """The stack of `cluster`; makes its record if there is none. `report` hears of a CLI being built."""
    settings = None if cluster.is_lab else ROOT / f"Pulumi.{cluster.name}.yaml"
    return ClusterStack(cluster, lambda: declare(cluster), pulumi_cli(report), STATE / cluster.name, settings)


def environment(cluster: Cluster) -> Mapping[str, str]:
    """This process's, with what Pulumi.<cluster>.yaml says in its place."""
    file = ROOT / f"Pulumi.{cluster.name}.yaml"
    known = yaml.safe_load(file.read_text()) if file.exists() else None
    return with_project(os.environ, ((known or {}).get("config") or {}).get("gcp:project"))


def has_stack(cluster: Cluster) -> bool:
    """Whether this checkout has ever built the cluster with its own state."""
    return (STATE / cluster.name).is_dir()


def secret_of(cluster: Cluster, name: str) -> str:
    """A secret that the spec names. NoKeyError where the stack keeps none of that name."""
    value = open_stack(cluster, lambda _: None).secret(name)
    if value is None:
        command = f"./menagerie secret {cluster.name} {name}"
        raise NoKeyError(f"{cluster.name} keeps no secret {name}; give it with: {command}")
    return value


def access_to(cluster: Cluster, report: Callable[[str], None] = lambda _: None) -> Access:
    """How to reach a built cluster. `operations.access.NotBuiltError` when it was never built."""
    return Access.from_stack(cluster.name, open_stack(cluster, report).outputs())


def pulumi_cli(report: Callable[[str], None]) -> Path:
    """The pulumi on PATH if it is at least as new as the SDK's pin, else the one from ``tools/``."""
    return installed_pulumi() or ensure(["pulumi"], lambda event: report(str(event)))["pulumi"]


def installed_pulumi() -> Path | None:
    """The pulumi on PATH if it is recent enough."""
    found = shutil.which("pulumi")
    return Path(found) if found and _version(found) >= _numbers(versions.PULUMI) else None


def _version(program: str) -> tuple[int, ...]:
    told = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    return _numbers(told.strip().removeprefix("v"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part.isdigit())
