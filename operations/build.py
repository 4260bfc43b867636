"""From a spec to a running cluster and back: `up`, `up --dry-run`, `destroy`."""

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
from cluster.project import ROOT
from cluster.spec import Cluster
from components.workers.group_vars import roles
from inventories.build import layout
from inventories.matching import check_tags, limited
from inventories.report import Progress, RunReport
from inventories.tally import Tally, words
from operations import lab
from operations.configure import (
    Request,
    Tokens,
    configure,
    no_tokens,
    patience_s,
    plan,
    tokens,
    variables,
    workers_error,
)
from operations.keys.rings import carried_over, carry_over, refuse_foreign
from operations.plan import Plan, Planner
from operations.readiness import refuse_unready
from operations.record import Operation, keep, one_operation, share
from operations.stack import environment, make_stack, open_stack, stack_to_look_at
from operations.upgrade.guard import left_to_upgrade, other_release, other_workers, refuse_other_release
from stacks.automation import ClusterStack, Summary
from stacks.errors import BackendError, OtherStateError, StackError, StackLockedError
from stacks.events import begun, deleted, describe, told

if TYPE_CHECKING:
    from clients.waiting import Report


class Steps(Protocol):
    """Who is told how the work goes: see `cli.output.Steps`."""

    def step(self, name: str) -> AbstractContextManager[None]: ...

    def detail(self, text: str) -> None: ...


STEPS = ("machine and programs", "cloud side", "API server", "workers", "nodes Ready", "add-ons")
"""Of an `up` of the whole cluster."""
PREVIEW_STEPS = ("cloud side", "workers")
DESTROY_STEPS = ("cloud side", "what is left")


@dataclass(frozen=True)
class Selection:
    """The workers that `up` and `up --dry-run` look at, and the roles; all of them unless something is named.

    limit: as ansible-playbook's --limit. tags: names of roles.
    """

    limit: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        return self.limit is None and not self.tags

    @property
    def options(self) -> str:
        """As somebody would type them: ``--limit rack_onprem_r1 --tags base,kubelet``; "" for all."""
        limit = ["--limit", self.limit] if self.limit else []
        return shlex.join([*limit, *(["--tags", ",".join(self.tags)] if self.tags else [])])

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of `up`: what only a whole cluster comes to is not waited for."""
        joins = not self.tags or "kubelet" in self.tags
        return STEPS if self.is_all else STEPS[: 5 if joins else 4]


@dataclass(frozen=True)
class Built:
    """What a run of `up` or `up --dry-run` changed, or would change."""

    stack: Summary
    workers: RunReport | None
    access: Access | None = field(repr=False)
    plan: Plan | None = None
    """Of the stack, where the run was a preview."""
    other_release: str = ""
    """What is left to `upgrade`: why `up` would refuse, where the run was a preview, else hosts that it left out."""

    @property
    def changed(self) -> int:
        """Resources of the stack plus tasks on workers."""
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
    """Raise what can be known to stand in the way of `up`, `up --dry-run` and `destroy`, before anything starts.

    declares: whether the program will run, or resources only be deleted.
    """
    refuse_unready(cluster, environment(cluster), declares=declares)
    if selection.limit:
        limited(layout(cluster), selection.limit)
    check_tags(selection.tags, roles(ROOT))
    variables(cluster)
    if cluster.is_lab:
        lab.refuse_without_rights()


def up(cluster: Cluster, steps: Steps, selection: Selection = Selection(), report: Report = lambda _: None) -> Built:
    """Bring the cluster to its spec. Every step may be run again; a second run changes nothing.

    report: hears what an operator should know besides. Raises LockedError while another operation holds the cluster.
    """
    with steps.step(STEPS[0]):
        stack = _known(cluster, steps.detail)
        found = stack.outputs() if stack else {}
        if found:
            refuse_other_release(cluster, Access.from_stack(cluster.name, found))
        _prepare(cluster, steps.detail)
    with ExitStack() as held:
        with steps.step(STEPS[1]):
            stack = stack or make_stack(cluster, steps.detail)
            for ring in carry_over(stack, found):
                again = f"./menagerie keys rotate {cluster.name} {ring}"
                report(f"{ring} is new, and what was there before counts beside it until you run: {again}")
            refuse_foreign(cluster.name, stack, found)
            operation = held.enter_context(_hold(cluster, found, "up", selection.options, report))
            summary, outputs = stack.up(on_event=describe(steps.detail))
            access = Access.from_stack(cluster.name, outputs)
            share(operation, access, report)
        workers, left = _bring_up_workers(cluster, access, steps, selection)
        return Built(summary, workers, access, other_release=left_to_upgrade(cluster, left))


def _hold(
    cluster: Cluster, outputs: dict[str, object], verb: str, about: str, report: Report
) -> AbstractContextManager[Operation]:
    """The cluster for ourselves. Also where its bucket does not answer: `up` makes and mends it, `destroy` deletes it."""
    access = None
    with suppress(NotBuiltError):
        access = Access.from_stack(cluster.name, outputs)
    return one_operation(cluster, access, verb, about, repeatable=True, without_record=True, report=report)


def _bring_up_workers(
    cluster: Cluster, access: Access, steps: Steps, selection: Selection
) -> tuple[RunReport, frozenset[str]]:
    """With the workers that were left out."""
    # What works on the API is not in memory beside the engine; see `Access.api`.
    from clients.nodes import region_missing
    from clients.waiting import nodes_missing, wait_until
    from operations.status import not_well

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
            wait_until(lambda: not_well(cluster, access), patience, steps.detail)
    return workers, left


def preview(
    cluster: Cluster, steps: Steps, selection: Selection = Selection(), planner: Planner | None = None
) -> Built:
    """What `up` would change, with the differences of files on workers, where there are some to look at.

    planner: hears of the plan, also of one that the engine does not end.
    """
    planner = planner or Planner()
    with ExitStack() as opened:
        with steps.step(PREVIEW_STEPS[0]):
            stack = opened.enter_context(stack_to_look_at(cluster, steps.detail))
            with carried_over(stack, stack.outputs()):
                summary = stack.preview(on_event=told(describe(steps.detail), begun(planner.hear)))
        return _preview_workers(cluster, stack, steps, selection, Built(summary, None, None, planner.plan()))


def _preview_workers(cluster: Cluster, stack: ClusterStack, steps: Steps, selection: Selection, built: Built) -> Built:
    """What was seen of the stack, with what would change on workers."""
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
    cluster: Cluster, steps: Steps, *, with_data: bool = False, report: Report = lambda _: None
) -> Summary | None:
    """Delete every resource, then what this checkout keeps about the cluster, but the records of who did what to it.

    None where the cluster's backend knows no stack of its name: then nothing is deleted but what is left of a lab.
    with_data: also disks, keys and buckets of a cloud, which are protected; RefusedError without. report: as of `up`.
    Raises the engine's StackError: of a lab once all that it is made of is removed, which needs no engine.
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
            report("the engine could not delete the stack; what the lab was made of is removed all the same")
            raise refused
    return summary


def to_destroy(cluster: Cluster, steps: Steps, *, with_data: bool = False) -> Plan | None:
    """What `destroy` would delete; None where the cluster's backend knows no stack of its name. RefusedError as of it."""
    with steps.step(DESTROY_STEPS[0]):
        stack = _known(cluster, steps.detail)
        if stack is None:
            return None
        if (protected := [] if cluster.is_lab else stack.protected()) and not with_data:
            raise _keeps_data(cluster.name, protected)
        planner = Planner()
        for resource in stack.deployment().get("resources", ()):
            planner.hear(deleted(resource))
        return planner.plan()


def _known(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack | None:
    """The cluster's stack, None where its backend knows none."""
    try:
        return open_stack(cluster, report)
    except NotBuiltError:
        return None


def _destroy_stack(
    cluster: Cluster, steps: Steps, held: ExitStack, report: Report, *, with_data: bool
) -> Summary | None:
    stack = _known(cluster, steps.detail)
    if stack is None:
        return None
    about = "--with-data" if with_data else ""
    operation = held.enter_context(_hold(cluster, stack.outputs(), "destroy", about, report))
    if protected := [] if cluster.is_lab else stack.protected():
        if not with_data:
            raise _keeps_data(cluster.name, protected)
        stack.let_go(on_event=describe(steps.detail))
    for line in _locked(cluster, stack.outputs()):
        report(line)
    summary = stack.destroy(on_event=describe(steps.detail))
    keep(operation)
    return summary


def _keeps_data(cluster: str, urns: list[str]) -> RefusedError:
    names = "\n  ".join(sorted(urn.rpartition("::")[2] for urn in urns))
    return RefusedError(
        f"{cluster} holds data that nothing brings back:\n  {names}\n"
        f"nothing was touched; to delete it too: ./menagerie destroy {cluster} --with-data",
        code="keeps-data",
    )


def _locked(cluster: Cluster, outputs: dict[str, object]) -> list[str]:
    """What a cloud will not delete yet, and why."""
    try:
        buckets = Access.from_stack(cluster.name, outputs).outputs.buckets
    except NotBuiltError:
        return []
    return [
        f"bucket {each.name} keeps {use} for {each.locked_days} days from when they were written: while it holds any, the cloud "
        "refuses to delete it, and its key stays with it; docs/explanation/audit-logs.md says how it ends"
        for use, each in buckets.items()
        if each.locked_days
    ]


def _prepare(cluster: Cluster, report: Report) -> None:
    if cluster.is_lab:
        lab.prepare(cluster, report)


def _configure(
    cluster: Cluster,
    access: Access,
    make: Tokens,
    steps: Steps,
    selection: Selection,
    *,
    check: bool,
    leaves: frozenset[str] = frozenset(),
) -> RunReport:
    work = plan(cluster, access, Request(selection.limit, selection.tags, check, diff=check, leaves=leaves))
    if not work.hosts:
        return RunReport({})
    report, why_stopped = configure(work, make, teller(len(work.hosts), steps.detail))
    if report.canceled:
        raise KeyboardInterrupt
    if why_stopped:
        raise workers_error(report, why_stopped)
    return report


def teller(hosts: int, report: Report) -> Callable[[Progress], None]:
    """Tells after each task that ends how far the hosts are."""
    tally = Tally(hosts)

    def tell(progress: Progress) -> None:
        now = time.monotonic()
        tally.hear(progress, now)
        report(f"{words(tally.count, tally.left_s())}; {progress.host}: {progress.task}")

    return tell
