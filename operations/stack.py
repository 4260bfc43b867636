"""A cluster's Pulumi stack, opened with what this checkout provides: the CLI, the state's place."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from clients.access import STATE, Access, NotBuiltError
from cluster import versions
from cluster.errors import RefusedError
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.plugins import provide
from stacks.automation import ClusterStack
from stacks.backend import Backend, chosen, refuse_elsewhere
from stacks.credentials import with_project
from stacks.program import declare
from tools.build import ensure


def open_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """The stack of `cluster`. NotBuiltError, with nothing written, where its backend knows none.

    report: hears of a CLI being built.
    """
    if not has_stack(cluster):
        raise not_built(cluster)
    return make_stack(cluster, report)


def make_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """The stack of `cluster`, with a record made if there is none: for what is about to build."""
    where = backend_of(cluster)
    url = where.url if where.said_by else ""
    cli = pulumi_cli(report)
    return ClusterStack(
        cluster, lambda: declare(cluster), cli, STATE / cluster.name, _settings(cluster), url, _plugins(cluster, report)
    )


@contextmanager
def stack_to_look_at(cluster: Cluster, report: Callable[[str], None]) -> Iterator[ClusterStack]:
    """The stack of `cluster`, or where there is none a passing one with its settings, for what only plans."""
    if has_stack(cluster):
        yield make_stack(cluster, report)
        return
    with tempfile.TemporaryDirectory(prefix="menagerie-plan-") as folder:
        settings = _settings(cluster)
        if settings:
            copy = Path(folder) / settings.name
            if settings.exists():
                shutil.copy(settings, copy)
            settings = copy
        state, cli = Path(folder) / "state", pulumi_cli(report)
        plugins = _plugins(cluster, report)
        yield ClusterStack(cluster, lambda: declare(cluster), cli, state, settings, plugins=plugins)


def _plugins(cluster: Cluster, report: Callable[[str], None]) -> Callable[[Path], None]:
    return lambda folder: provide(cluster, folder, report)


def _settings(cluster: Cluster) -> Path | None:
    return None if cluster.is_lab else ROOT / f"Pulumi.{cluster.name}.yaml"


def environment(cluster: Cluster) -> Mapping[str, str]:
    """This process's, with what Pulumi.<cluster>.yaml says in its place."""
    file = ROOT / f"Pulumi.{cluster.name}.yaml"
    known = yaml.safe_load(file.read_text()) if file.exists() else None
    return with_project(os.environ, ((known or {}).get("config") or {}).get("gcp:project"))


def backend_of(cluster: Cluster) -> Backend:
    """Where the cluster's stack is, if there is one."""
    return chosen(cluster.name, STATE / cluster.name, ROOT, os.environ, is_lab=cluster.is_lab)


class Stacks:
    """Which clusters have a stack. Each backend is asked once, whoever asks first."""

    def __init__(self, report: Callable[[str], None] = lambda _: None) -> None:
        self._report = report
        self._known: dict[str, frozenset[str]] = {}
        self._one = threading.Lock()

    def has(self, cluster: Cluster) -> bool:
        """BackendError where the backend can't be read, OtherStateError where the stack is in another that is known."""
        where = backend_of(cluster)
        with self._one:
            if where.url not in self._known:
                self._known[where.url] = where.stacks(lambda: pulumi_cli(self._report))
        if cluster.name in self._known[where.url]:
            return True
        refuse_elsewhere(cluster.name, where)
        return False


def has_stack(cluster: Cluster) -> bool:
    """Whether the cluster's backend knows a stack of its name. Raises as `Stacks.has`."""
    return Stacks().has(cluster)


def not_built(cluster: Cluster) -> NotBuiltError:
    """With the place that was looked at."""
    where = backend_of(cluster).shown
    return NotBuiltError(
        f"{cluster.name} has not been built: {where} knows no stack of that name; run: ./menagerie up {cluster.name}\n"
        f"  (a stack that is elsewhere is found by PULUMI_BACKEND_URL, or backend.url of Pulumi.yaml)"
    )


def secret_of(cluster: Cluster, name: str) -> str:
    """A secret that the spec names. RefusedError where the stack keeps none of that name, or there is no stack."""
    value = kept_secret(cluster, name)
    if value is None:
        command = f"./menagerie secret {cluster.name} {name}"
        raise RefusedError(f"{cluster.name} keeps no secret {name}; give it with: {command}", code="no-key")
    return value


def kept_secret(cluster: Cluster, name: str, report: Callable[[str], None] = lambda _: None) -> str | None:
    """A secret of the stack's configuration; None where it has none of that name, or there is no stack."""
    return make_stack(cluster, report).secret(name) if has_stack(cluster) else None


def access_to(cluster: Cluster, report: Callable[[str], None] = lambda _: None) -> Access:
    """How to reach a built cluster. `clients.access.NotBuiltError` when it was never built."""
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
