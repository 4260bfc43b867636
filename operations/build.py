"""From a spec to a running cluster and back: `up`, `preview`, `destroy`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cluster.spec import Cluster
from inventories.build import Inventory, Variables, build, layout
from inventories.matching import check_tags, limited
from inventories.report import Progress, RunReport
from inventories.run import run
from inventories.variables import declared, read_variables, roles
from operations import lab
from operations.access import ROOT, STATE, Access, NotBuiltError, forget_runtime
from operations.plan import Plan, Planner
from operations.readiness import refuse_unready
from operations.stack import has_stack, open_stack
from stacks.automation import StackError, StackLockedError, Summary
from stacks.events import begun, describe, told

if TYPE_CHECKING:
    from operations.waiting import Report

TIMEOUT_S = 180
CLOUD_TIMEOUT_S = 900
"""For each thing waited for: hosts of a cloud take minutes to start, and a lab's have no time to lose."""
INVENTORIES = ROOT / "inventories"


class WorkersError(Exception):
    """Some workers could not be configured; `unreachable` tells whether that is all that went wrong."""

    def __init__(self, report: RunReport) -> None:
        self.unreachable = bool(report.unreachable) and not report.failed
        done = sum(host.succeeded for host in report.hosts.values())
        lines = [f"{done} of {len(report.hosts)} hosts done"]
        lines += [f"{f.host}: {f.role}: {f.task}: {f.message}" for f in report.failures]
        super().__init__(
            "\n  ".join(lines) + "\nRun the same command again when they are mended; it goes on from here."
        )


class KeepsDataError(Exception):
    """A stack holds what is protected, and nobody said that it may go."""

    def __init__(self, cluster: str, urns: list[str]) -> None:
        names = "\n  ".join(sorted(urn.rpartition("::")[2] for urn in urns))
        super().__init__(
            f"{cluster} holds data that nothing brings back:\n  {names}\n"
            f"nothing was touched; to delete it too: ./menagerie destroy {cluster} --with-data"
        )


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
    """The workers that `up` and `preview` look at, and the roles; all of them unless something is named.

    limit: as ansible-playbook's --limit. tags: names of roles.
    """

    limit: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        return self.limit is None and not self.tags

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of `up`: what only a whole cluster comes to is not waited for."""
        joins = not self.tags or "kubelet" in self.tags
        return STEPS if self.is_all else STEPS[: 5 if joins else 4]


@dataclass(frozen=True)
class Built:
    """What a run of `up` or `preview` changed, or would change."""

    stack: Summary
    workers: RunReport | None
    access: Access | None = field(repr=False)
    plan: Plan | None = None
    """Of the stack, where the run was a preview."""

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
        }


def refuse(cluster: Cluster, selection: Selection = Selection(), *, declares: bool = True) -> None:
    """Raise what can be known to stand in the way of `up`, `preview` and `destroy`, before anything starts.

    declares: whether the program will run, or resources only be deleted.
    """
    refuse_unready(cluster, os.environ, declares=declares)
    if selection.limit:
        limited(layout(cluster), selection.limit)
    check_tags(selection.tags, roles(ROOT))
    _variables(cluster)
    if cluster.is_lab:
        lab.refuse_without_rights()


def up(cluster: Cluster, steps: Steps, selection: Selection = Selection()) -> Built:
    """Bring the cluster to its spec. Every step may be run again; a second run changes nothing."""
    with steps.step(STEPS[0]):
        _prepare(cluster, steps.detail)
    with steps.step(STEPS[1]):
        stack = open_stack(cluster, steps.detail)
        summary, outputs = stack.up(on_event=describe(steps.detail))
        access = Access.from_stack(cluster.name, outputs)
    return Built(summary, _bring_up_workers(cluster, access, steps, selection), access)


def _bring_up_workers(cluster: Cluster, access: Access, steps: Steps, selection: Selection) -> RunReport:
    # What works on the API is not in memory beside the engine; see `Access.api`.
    from operations.status import not_well
    from operations.tokens import join_token
    from operations.waiting import api_missing, nodes_missing, wait_until

    api, patience_s = access.api(), TIMEOUT_S if cluster.is_lab else CLOUD_TIMEOUT_S
    with steps.step(STEPS[2]):
        wait_until(lambda: api_missing(api), patience_s, steps.detail)
    with steps.step(STEPS[3]), join_token(api) as token:
        workers = _configure(cluster, access, token, steps, selection, check=False)
        if not workers.succeeded:
            raise WorkersError(workers)
    if STEPS[4] in selection.steps:
        with steps.step(STEPS[4]):
            expected = frozenset(limited(layout(cluster), selection.limit))
            wait_until(lambda: nodes_missing(api, expected), patience_s, steps.detail)
    if STEPS[5] in selection.steps:
        with steps.step(STEPS[5]):
            wait_until(lambda: not_well(cluster, access), patience_s, steps.detail)
    return workers


def preview(
    cluster: Cluster, steps: Steps, selection: Selection = Selection(), planner: Planner | None = None
) -> Built:
    """What `up` would change, with the differences of files on workers, where there are some to look at.

    planner: hears of the plan, also of one that the engine does not end.
    """
    planner = planner or Planner()
    with steps.step(PREVIEW_STEPS[0]):
        stack = open_stack(cluster, steps.detail)
        summary = stack.preview(on_event=told(describe(steps.detail), begun(planner.hear)))
    with steps.step(PREVIEW_STEPS[1]):
        try:
            access = Access.from_stack(cluster.name, stack.outputs())
        except NotBuiltError:
            return Built(summary, None, None, planner.plan())
        workers = _configure(cluster, access, None, steps, selection, check=True)
    if not workers.succeeded:
        raise WorkersError(workers)
    return Built(summary, workers, access, planner.plan())


def destroy(cluster: Cluster, steps: Steps, *, with_data: bool = False) -> Summary:
    """Delete every resource, then what this checkout keeps about the cluster.

    with_data: also disks, keys and buckets of a cloud, which are protected; KeepsDataError without.
    """
    summary = Summary({}, 0.0)
    with steps.step(DESTROY_STEPS[0]):
        if has_stack(cluster):
            summary = _destroy_stack(cluster, steps, with_data=with_data)
    with steps.step(DESTROY_STEPS[1]):
        if cluster.is_lab:
            lab.clean(steps.detail)
        shutil.rmtree(STATE / cluster.name, ignore_errors=True)
        forget_runtime(cluster.name)
    return summary


def _destroy_stack(cluster: Cluster, steps: Steps, *, with_data: bool) -> Summary:
    """A lab goes even when its state can't be read: the next step removes all that it is made of."""
    try:
        stack = open_stack(cluster, steps.detail)
        if protected := [] if cluster.is_lab else stack.protected():
            if not with_data:
                raise KeepsDataError(cluster.name, protected)
            stack.let_go(on_event=describe(steps.detail))
        return stack.destroy(on_event=describe(steps.detail))
    except StackLockedError:
        raise
    except StackError as error:
        if not cluster.is_lab:
            raise
        steps.detail(f"the engine could not do it: {error}")
        return Summary({}, 0.0)


def _prepare(cluster: Cluster, report: Report) -> None:
    if cluster.is_lab:
        lab.prepare(cluster, report)


def _variables(cluster: Cluster) -> Variables:
    known = frozenset[str]().union(*declared(ROOT).values())
    return read_variables(INVENTORIES / cluster.name, layout(cluster).groups, known)


def _configure(
    cluster: Cluster, access: Access, token: str | None, steps: Steps, selection: Selection, *, check: bool
) -> RunReport:
    inventory = build(cluster, access.outputs, token, _variables(cluster))
    if not inventory.hosts:
        return RunReport({})
    with access.ssh_key_file() as key:
        report = run(
            inventory,
            check=check,
            diff=check,
            limit=selection.limit,
            tags=selection.tags,
            private_key=key,
            on_progress=_teller(inventory, steps.detail),
        )
    if report.canceled:
        raise KeyboardInterrupt
    return report


def _teller(inventory: Inventory, report: Report) -> Callable[[Progress], None]:
    """Tells of each task that ends, with how many tasks are left on all hosts together."""
    numbers: dict[str, int] = {}

    def tell(progress: Progress) -> None:
        numbers[progress.host] = progress.number
        done, total = sum(numbers.values()), progress.total * len(inventory.hosts)
        report(f"{progress.host}: {progress.task} ({done} of about {total} tasks)")

    return tell
