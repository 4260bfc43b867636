"""Opens a cluster's Pulumi stack with this checkout's CLI and state backend."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from clients.access import STATE, Access, NotBuiltError
from cluster import versions
from cluster.errors import RefusedError
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.plugins import provide
from stacks.backend import Backend, chosen, refuse_elsewhere
from stacks.credentials import with_project
from tools.build import ensure

if TYPE_CHECKING:
    from stacks.automation import ClusterStack


def open_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """Return the cluster's stack. Raises NotBuiltError, and writes nothing, if its backend has none.

    report: gets progress if the CLI is built.
    """
    if not has_stack(cluster):
        raise not_built(cluster)
    return stack_in(cluster, backend_of(cluster), report, exists=True)


def make_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """Return the cluster's stack; create it if there is none. For callers that are about to build."""
    return stack_in(cluster, backend_of(cluster), report)


def stack_in(cluster: Cluster, where: Backend, report: Callable[[str], None], *, exists: bool = False) -> ClusterStack:
    """Return the cluster's stack in a backend; create it if there is none. exists: the caller knows that there is one."""
    url = where.url if where.configured_by else ""
    return _engine(cluster, pulumi_cli(report), STATE / cluster.name, settings_of(cluster), url, report, exists=exists)


def _engine(
    cluster: Cluster,
    cli: Path,
    state: Path,
    settings: Path | None,
    url: str,
    report: Callable[[str], None],
    *,
    exists: bool = False,
    is_temporary: bool = False,
) -> ClusterStack:
    from stacks.automation import ClusterStack  # noqa: PLC0415 - time: a refusal needs no engine
    from stacks.program import declare  # noqa: PLC0415 - time: as above

    plugins = _plugins(cluster, report)
    return ClusterStack(
        cluster, lambda: declare(cluster), cli, state, settings, url, plugins, is_temporary=is_temporary, exists=exists
    )


@contextmanager
def stack_to_look_at(cluster: Cluster, report: Callable[[str], None]) -> Iterator[ClusterStack]:
    """Yield the cluster's stack, or a temporary one with its settings if there is none. For callers that only plan."""
    if has_stack(cluster):
        yield stack_in(cluster, backend_of(cluster), report, exists=True)
        return
    with tempfile.TemporaryDirectory(prefix="menagerie-plan-") as folder:
        settings = settings_of(cluster)
        if settings:
            copy = Path(folder) / settings.name
            if settings.exists():
                shutil.copy(settings, copy)
            settings = copy
        yield _engine(cluster, pulumi_cli(report), Path(folder) / "state", settings, "", report, is_temporary=True)


def _plugins(cluster: Cluster, report: Callable[[str], None]) -> Callable[[Path], None]:
    return lambda folder: provide(cluster, folder, report)


def settings_of(cluster: Cluster) -> Path | None:
    """Return Pulumi.<cluster>.yaml, which may not exist; None for a lab, which has none."""
    return None if cluster.is_lab else ROOT / f"Pulumi.{cluster.name}.yaml"


def environment(cluster: Cluster) -> Mapping[str, str]:
    """Return this process's environment, with the overrides from Pulumi.<cluster>.yaml."""
    file = ROOT / f"Pulumi.{cluster.name}.yaml"
    settings = yaml.safe_load(file.read_text()) if file.exists() else None
    return with_project(os.environ, ((settings or {}).get("config") or {}).get("gcp:project"))


def backend_of(cluster: Cluster) -> Backend:
    """Return the backend where the cluster's stack is, if there is one."""
    return chosen(cluster.name, STATE / cluster.name, ROOT, os.environ, is_lab=cluster.is_lab)


class Stacks:
    """Knows which clusters have a stack. Asks each backend once, also from several threads."""

    def __init__(self, report: Callable[[str], None] = lambda _: None) -> None:
        self._report = report
        self._by_backend: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()

    def has(self, cluster: Cluster) -> bool:
        """Return whether the cluster has a stack.

        Raises BackendError if the backend can't be read, OtherStateError if the stack is in another known backend.
        """
        where = backend_of(cluster)
        with self._lock:
            if where.url not in self._by_backend:
                self._by_backend[where.url] = where.stacks(lambda: pulumi_cli(self._report))
        if cluster.name in self._by_backend[where.url]:
            return True
        refuse_elsewhere(cluster.name, where)
        return False


def has_stack(cluster: Cluster) -> bool:
    """Return whether the cluster's backend has a stack of its name. Raises what `Stacks.has` raises."""
    return Stacks().has(cluster)


def not_built(cluster: Cluster) -> NotBuiltError:
    """Return the error, with the backend that was searched."""
    where = backend_of(cluster).shown
    return NotBuiltError(
        f"{cluster.name} has not been built: {where} has no stack of that name; run: ./menagerie up {cluster.name}\n"
        f"  (if the stack is in another backend, set PULUMI_BACKEND_URL or backend.url in Pulumi.yaml, or run pulumi login)"
    )


def secret_of(cluster: Cluster, name: str) -> str:
    """Return a secret that the spec names. Raises RefusedError if the stack has none of that name, or there is no stack."""
    value = kept_secret(cluster, name)
    if value is None:
        command = f"./menagerie secret {cluster.name} {name}"
        raise RefusedError(f"{cluster.name} has no secret {name}; store it with: {command}", code="no-key")
    return value


def kept_secret(cluster: Cluster, name: str, report: Callable[[str], None] = lambda _: None) -> str | None:
    """Return a secret from the stack's configuration; None if it has none of that name, or there is no stack."""
    return stack_in(cluster, backend_of(cluster), report, exists=True).secret(name) if has_stack(cluster) else None


def access_to(cluster: Cluster, report: Callable[[str], None] = lambda _: None) -> Access:
    """Return the access to a built cluster. Raises `clients.access.NotBuiltError` if it was never built."""
    return Access.from_stack(cluster.name, open_stack(cluster, report).outputs())


def access_if_built(cluster: Cluster, report: Callable[[str], None] = lambda _: None) -> Access | None:
    """Return the access to a cluster; None if it was never built. Raises BackendError if that is unknown."""
    try:
        return access_to(cluster, report)
    except NotBuiltError:
        return None


def pulumi_cli(report: Callable[[str], None]) -> Path:
    """Return the pulumi on PATH if it is at least as new as the SDK's pin, else the one from ``tools/``."""
    return installed_pulumi() or ensure(["pulumi"], lambda event: report(str(event)))["pulumi"]


def installed_pulumi() -> Path | None:
    """Return the pulumi on PATH if it is recent enough."""
    program = shutil.which("pulumi")
    return Path(program) if program and _version(program) >= _numbers(versions.PULUMI) else None


def _version(program: str) -> tuple[int, ...]:
    output = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    return _numbers(output.strip().removeprefix("v"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part.isdigit())
