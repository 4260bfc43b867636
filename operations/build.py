"""Build a cluster from its spec and delete it: `up`, `up --dry-run`, `destroy`."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from clients.access import STATE, Access, NotBuiltError, forget_runtime
from cluster.errors import RefusedError
from cluster.project import TOOLKIT
from cluster.spec import Cluster
from components.workers.group_vars import roles
from inventories.build import layout
from inventories.matching import check_tags, limited
from inventories.report import Progress, RunReport
from inventories.tally import Tally, words
from operations import lab
from operations.configure import (
    PlaybookRequest,
    Tokens,
    configure,
    no_tokens,
    patience_s,
    plan,
    selecting,
    tokens,
    variables,
    workers_error,
)
from operations.keys.rings import carried_over, carry_over, refuse_foreign
from operations.plan import Planner, StackPlan
from operations.readiness import refuse_unready
from operations.record import Operation, keep, one_operation, share
from operations.stack import environment, make_stack, open_stack, stack_to_look_at
from operations.upgrade.guard import left_to_upgrade, other_release, other_workers, refuse_other_release
from stacks.errors import BackendError, OtherStateError, StackError, StackLockedError
from stacks.events import deleted, describe, fan_out, on_resource_start

if TYPE_CHECKING:
    from clients.waiting import Report
    from stacks.automation import ClusterStack, Summary


class BuildProgress(Protocol):
    """Receives progress: see `cli.output.Steps`."""

    def step(self, name: str) -> AbstractContextManager[None]: ...

    def detail(self, text: str) -> None: ...


STEPS = ("machine and programs", "cloud side", "API server", "workers", "nodes Ready", "add-ons")
"""The steps of `up` for the whole cluster."""
PREVIEW_STEPS = ("cloud side", "workers")
DESTROY_STEPS = ("cloud side", "what is left")


@dataclass(frozen=True)
class Selection:
    """The workers and roles for `up` and `up --dry-run`; all of them by default.

    limit: like ansible-playbook's --limit. tags: names of roles.
    """

    limit: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        return self.limit is None and not self.tags

    @property
    def options(self) -> str:
        """The command-line options: ``--limit rack_onprem_r1 --tags base,kubelet``; "" for all."""
        return shlex.join(selecting(self.limit, self.tags))

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of `up`, without those that need the whole cluster if it is limited."""
        joins = not self.tags or "kubelet" in self.tags
        return STEPS if self.is_all else STEPS[: 5 if joins else 4]


@dataclass(frozen=True)
class Built:
    """The changes of a run of `up` or `up --dry-run`."""

    stack: Summary
    workers: RunReport | None
    access: Access | None = field(repr=False)
    plan: StackPlan | None = None
    """The stack's plan, if the run was a preview."""
    other_release: str = ""
    """What `upgrade` must do: in a preview, why `up` would refuse; else the hosts that it left out."""

    @property
    def changed(self) -> int:
        """Number of changed resources of the stack plus changed tasks on workers."""
        return self.stack.changed + (self.workers.changed if self.workers else 0)

    def to_json(self) -> dict[str, object]:
        return {
            "changed": self.changed,
            "stack": {"changes": self.stack.changes, "seconds": self.stack.seconds},
            "workers": self.workers.to_json() if self.workers else None,
            **({"plan": self.plan.to_json()} if self.plan else {}),
            **({"other_release": self.other_release} if self.other_release else {}),
        }


def refuse(cluster: Cluster, selection: Selection = Selection(), *, declares: bool = True) -> None:
    """Check everything that can block `up`, `up --dry-run` and `destroy` before anything starts; raise if it would.

    declares: whether the Pulumi program will run; False if resources are only deleted.
    """
    refuse_unready(cluster, environment(cluster), declares=declares)
    if selection.limit:
        limited(layout(cluster), selection.limit)
    check_tags(selection.tags, roles(TOOLKIT))
    variables(cluster)
    if cluster.is_lab:
        lab.refuse_without_rights()


def up(
    cluster: Cluster, steps: BuildProgress, selection: Selection = Selection(), report: Report = lambda _: None
) -> Built:
    """Reconcile the cluster with its spec. Every step is idempotent; a second run changes nothing.

    report: gets further notes for the operator. Raises LockedError while another operation holds the cluster.
    """
    with steps.step(STEPS[0]):
        stack = _stack_if_any(cluster, steps.detail)
        outputs_before = stack.outputs() if stack else {}
        if outputs_before:
            refuse_other_release(cluster, Access.from_stack(cluster.name, outputs_before))
        _prepare(cluster, steps.detail)
    with ExitStack() as held:
        with steps.step(STEPS[1]):
            stack = stack or make_stack(cluster, steps.detail)
            for ring in carry_over(stack, outputs_before):
                again = f"./menagerie keys rotate {cluster.name} {ring}"
                report(f"{ring} is new. The old one stays valid until you run: {again}")
            refuse_foreign(cluster.name, stack, outputs_before)
            operation = held.enter_context(_hold(cluster, outputs_before, "up", selection.options, report))
            summary, outputs = stack.up(on_event=describe(steps.detail))
            access = Access.from_stack(cluster.name, outputs)
            share(operation, access, report)
        workers, left = _bring_up_workers(cluster, access, steps, selection)
        return Built(summary, workers, access, other_release=left_to_upgrade(cluster, left))


def _hold(
    cluster: Cluster, outputs: dict[str, object], verb: str, about: str, report: Report
) -> AbstractContextManager[Operation]:
    """Lock the cluster. Works without its bucket too: `up` creates and repairs the bucket, `destroy` deletes it."""
    access = None
    with suppress(NotBuiltError):
        access = Access.from_stack(cluster.name, outputs)
    return one_operation(cluster, access, verb, about, repeatable=True, without_record=True, report=report)


def _bring_up_workers(
    cluster: Cluster, access: Access, steps: BuildProgress, selection: Selection
) -> tuple[RunReport, frozenset[str]]:
    """Configure the workers and wait for them. Return the report and the workers that were left out."""
    from clients.nodes import region_missing  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine
    from clients.waiting import nodes_missing, wait_until  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine
    from operations.status.read import unhealthy_parts  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

    api, patience = access.api(), patience_s(cluster)
    with steps.step(STEPS[2]):
        make = tokens(cluster, access, steps.detail)
        left = other_workers(cluster, access, selection.tags)
    with steps.step(STEPS[3]):
        workers = _configure(cluster, access, make, steps, selection, check=False, leaves=left)
        if not workers.succeeded:
            raise workers_error(workers)
    if STEPS[4] in selection.steps:
        with steps.step(STEPS[4]):
            expected = frozenset(limited(layout(cluster), selection.limit))
            wait_until(lambda: nodes_missing(api, expected), patience, steps.detail)
            if selection.is_all:
                wait_until(lambda: region_missing(cluster, api), patience, steps.detail)
    if STEPS[5] in selection.steps:
        with steps.step(STEPS[5]):
            wait_until(lambda: unhealthy_parts(cluster, access), patience, steps.detail)
    return workers, left


def preview(
    cluster: Cluster, steps: BuildProgress, selection: Selection = Selection(), planner: Planner | None = None
) -> Built:
    """Return what `up` would change, with diffs of files on workers if the cluster is built.

    planner: gets the plan, even if the engine fails before its end.
    """
    planner = planner or Planner.of(cluster)
    with ExitStack() as opened:
        with steps.step(PREVIEW_STEPS[0]):
            stack = opened.enter_context(stack_to_look_at(cluster, steps.detail))
            with carried_over(stack, stack.outputs()):
                summary = stack.preview(on_event=fan_out(describe(steps.detail), on_resource_start(planner.hear)))
        return _preview_workers(cluster, stack, steps, selection, Built(summary, None, None, planner.plan()))


def _preview_workers(
    cluster: Cluster, stack: ClusterStack, steps: BuildProgress, selection: Selection, built: Built
) -> Built:
    """Return `built` with the changes on workers."""
    with steps.step(PREVIEW_STEPS[1]):
        try:
            access = Access.from_stack(cluster.name, stack.outputs())
        except NotBuiltError:
            return built
        if other := other_release(cluster, access):
            return replace(built, access=access, other_release=other)
        workers = _configure(cluster, access, no_tokens, steps, selection, check=True)
    if not workers.succeeded:
        raise workers_error(workers)
    return replace(built, workers=workers, access=access)


def destroy(
    cluster: Cluster, steps: BuildProgress, *, with_data: bool = False, report: Report = lambda _: None
) -> Summary | None:
    """Delete every resource and this checkout's files about the cluster, except the records of who did what to it.

    Returns None if the cluster's backend has no stack of its name: then only the remains of a lab are deleted.
    with_data: also delete a cloud's protected disks, keys and buckets; RefusedError without it. report: as for `up`.
    Raises the engine's StackError. A lab's parts are removed first, which needs no engine.
    """
    refused: StackError | None = None
    summary: Summary | None = None
    with ExitStack() as held:
        try:
            with steps.step(DESTROY_STEPS[0]):
                summary = _destroy_stack(cluster, steps, held, report, with_data=with_data)
        except (StackLockedError, BackendError, OtherStateError):
            raise
        except StackError as error:
            if not cluster.is_lab:
                raise
            refused = error
        with steps.step(DESTROY_STEPS[1]):
            if cluster.is_lab:
                lab.clean(steps.detail)
            if cluster.is_lab or summary:
                shutil.rmtree(STATE / cluster.name, ignore_errors=True)
                forget_runtime(cluster.name)
        if refused:
            report("the engine could not delete the stack; everything else of the lab was removed")
            raise refused
    return summary


def to_destroy(cluster: Cluster, steps: BuildProgress, *, with_data: bool = False) -> StackPlan | None:
    """Return what `destroy` would delete; None if the backend has no stack of its name. Raises RefusedError as
    `destroy` does."""
    with steps.step(DESTROY_STEPS[0]):
        stack = _stack_if_any(cluster, steps.detail)
        if stack is None:
            return None
        if (protected := [] if cluster.is_lab else stack.protected()) and not with_data:
            raise _keeps_data(cluster.name, protected)
        planner = Planner.of(cluster)
        for resource in stack.deployment().get("resources", ()):
            planner.hear(deleted(resource))
        return planner.plan()


def _stack_if_any(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack | None:
    """Return the cluster's stack, None if its backend has none."""
    try:
        return open_stack(cluster, report)
    except NotBuiltError:
        return None


def _destroy_stack(
    cluster: Cluster, steps: BuildProgress, held: ExitStack, report: Report, *, with_data: bool
) -> Summary | None:
    stack = _stack_if_any(cluster, steps.detail)
    if stack is None:
        return None
    about = "--with-data" if with_data else ""
    operation = held.enter_context(_hold(cluster, stack.outputs(), "destroy", about, report))
    if protected := [] if cluster.is_lab else stack.protected():
        if not with_data:
            raise _keeps_data(cluster.name, protected)
        stack.remove_protection(on_event=describe(steps.detail))
    for line in _locked(cluster, stack.outputs()):
        report(line)
    summary = stack.destroy(on_event=describe(steps.detail))
    keep(operation)
    return summary


def _keeps_data(cluster: str, urns: list[str]) -> RefusedError:
    names = "\n  ".join(sorted({urn.rpartition("::")[2] for urn in urns}))
    return RefusedError(
        f"{cluster} has data that can't be recovered:\n  {names}\n"
        f"Nothing was changed. To delete the data too, run: ./menagerie destroy {cluster} --with-data",
        code="keeps-data",
    )


def _locked(cluster: Cluster, outputs: dict[str, object]) -> list[str]:
    """Return what a cloud will not delete yet, and why."""
    try:
        buckets = Access.from_stack(cluster.name, outputs).outputs.buckets
    except NotBuiltError:
        return []
    return [
        f"bucket {bucket.name} keeps {use} for {bucket.locked_days} days after they are written; until it is empty, the cloud "
        "refuses to delete it, and its key stays too; see docs/explanation/audit-logs.md"
        for use, bucket in buckets.items()
        if bucket.locked_days
    ]


def _prepare(cluster: Cluster, report: Report) -> None:
    if cluster.is_lab:
        lab.prepare(cluster, report)


def _configure(
    cluster: Cluster,
    access: Access,
    make: Tokens,
    steps: BuildProgress,
    selection: Selection,
    *,
    check: bool,
    leaves: frozenset[str] = frozenset(),
) -> RunReport:
    work = plan(cluster, access, PlaybookRequest(selection.limit, selection.tags, check, diff=check, leaves=leaves))
    if not work.hosts:
        return RunReport({})
    report, why_stopped = configure(work, make, teller(len(work.hosts), steps.detail))
    if report.canceled:
        raise KeyboardInterrupt
    if why_stopped:
        raise workers_error(report, why_stopped)
    return report


def teller(hosts: int, report: Report) -> Callable[[Progress], None]:
    """Return a callback that reports the progress of the hosts after each task."""
    tally = Tally(hosts)

    def tell(progress: Progress) -> None:
        now = time.monotonic()
        tally.hear(progress, now)
        report(f"{words(tally.count, tally.left_s())}; {progress.host}: {progress.task}")

    return tell
