"""Move a cluster's stack from one backend to another, with the same secrets and resources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.access import STATE, Access
from cluster.errors import RefusedError
from cluster.spec import Cluster
from cluster.writing import replace
from operations.stack import backend_of, pulumi_cli, stack_in
from stacks.backend import Backend, own_folder
from stacks.errors import StackError
from stacks.policies.values import shown

if TYPE_CHECKING:
    from stacks.automation import ClusterStack

Report = Callable[[str], None]
Hold = Callable[[Access | None], AbstractContextManager[object]]


@dataclass(frozen=True)
class StackMove:
    """A stack's way. source, target: backends, as shown to people. resources: of the stack. copy: file with the state before the move."""

    source: str
    target: str
    resources: int
    copy: Path | None = None


def plan(cluster: Cluster, url: str, report: Report) -> StackMove:
    """Return what `move` would do. url: backend that has the stack, "" for the folder of this checkout. Raises RefusedError."""
    source, target = _backends(cluster, url)
    _refuse(cluster, source, target, report)
    document = stack_in(cluster, source, report, exists=True).exported()
    _refuse_unfinished(cluster, document)
    return StackMove(source.shown, target.shown, _count(document))


def move(cluster: Cluster, url: str, hold: Hold, report: Report) -> StackMove:
    """Move the stack to the configured backend: copy, compare, then remove it from the other one.

    hold: locks the cluster for a block. An interrupted move continues when it is run again. Raises StackError if the two
    differ after copying; the source still has the stack then.
    """
    source, target = _backends(cluster, url)
    _refuse(cluster, source, target, report)
    old = stack_in(cluster, source, report, exists=True)
    outputs = old.outputs()
    access = Access.from_stack(cluster.name, outputs) if "outputs" in outputs else None
    with hold(access):
        document = old.exported()
        _refuse_unfinished(cluster, document)
        copy = _copied(cluster, document)
        report(f"the state before the move is in {copy}")
        new = stack_in(cluster, target, report)
        if not _resources(new.exported()):
            new.restore(document)
        _compare(cluster, document, new, outputs, target)
        old.forget()
    return StackMove(source.shown, target.shown, _count(document), copy)


def _backends(cluster: Cluster, url: str) -> tuple[Backend, Backend]:
    if cluster.is_lab:
        raise RefusedError(
            f"{cluster.name} is a lab, whose state belongs to this machine; it can't be moved", code="state-move"
        )
    own = own_folder(STATE / cluster.name)
    return (Backend(url, "--from", own.own) if url else own), backend_of(cluster)


def _refuse(cluster: Cluster, source: Backend, target: Backend, report: Report) -> None:
    """Raise RefusedError unless the source has the stack, and the target has none or the same."""
    if source.shown == target.shown:
        raise RefusedError(
            f"the state of {cluster.name} is to be at {source.shown} already; name its present backend with --from URL, and set "
            "the new one first: PULUMI_BACKEND_URL, or backend.url in Pulumi.yaml",
            code="state-move",
        )
    there = cluster.name in _stacks(target, report)
    if cluster.name not in _stacks(source, report):
        note = f"; {target.shown} has it, so there is nothing to move" if there else ""
        raise RefusedError(f"{source.shown} has no stack {cluster.name}{note}", code="state-move")
    if not there:
        return
    theirs, ours = (
        _resources(stack_in(cluster, backend, report, exists=True).exported()) for backend in (target, source)
    )
    if theirs and theirs != ours:
        raise RefusedError(
            f"{target.shown} already has a stack {cluster.name}, with other resources; nothing was changed. To compare the two, "
            f"set PULUMI_BACKEND_URL to each and run: ./menagerie show outputs {cluster.name}",
            code="state-move",
        )


def _refuse_unfinished(cluster: Cluster, document: Mapping[str, Any]) -> None:
    """Raise RefusedError if a run of the engine was interrupted: a record in the state may be the only trace of a resource."""
    if pending := document["deployment"].get("pending_operations"):
        raise RefusedError(
            f"an interrupted run of {cluster.name} left {len(pending)} operations unfinished; finish it before the move: "
            f"./menagerie up {cluster.name}, with the present backend",
            code="state-move",
        )


def _copied(cluster: Cluster, document: Mapping[str, Any]) -> Path:
    """Write the state into a new file, and return its path. Secrets in it stay encrypted."""
    path = STATE / cluster.name / f"state-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    replace(path, json.dumps(document).encode(), mode=0o600)
    return path


def _compare(
    cluster: Cluster, document: Mapping[str, Any], new: ClusterStack, outputs: Mapping[str, object], target: Backend
) -> None:
    """Raise StackError unless the new backend has the same resources, and opens the same secrets of its outputs."""
    if _resources(new.exported()) != _resources(document) or new.outputs() != outputs:
        raise StackError(
            f"{target.shown} does not return the state of {cluster.name} as it was written; the other backend still has the stack"
        )


def _stacks(backend: Backend, report: Report) -> frozenset[str]:
    return backend.stacks(lambda: pulumi_cli(report))


def _resources(document: Mapping[str, Any]) -> list[Any]:
    """Return the resources without ciphertexts: each import encrypts secrets again."""
    return [shown(resource) for resource in document["deployment"].get("resources") or ()]


def _count(document: Mapping[str, Any]) -> int:
    """Count the resources without the stack itself."""
    return max(0, len(_resources(document)) - 1)
