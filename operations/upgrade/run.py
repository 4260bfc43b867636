"""`upgrade`: checks, then executes the plan stage by stage. An interrupted run resumes from the running versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from clients.access import Access
from clients.waiting import Report
from cluster.errors import FailedError, TimedOutError
from cluster.images import by_digest, kube_proxy
from cluster.sources import without_checksum
from cluster.spec import Cluster
from operations import configure, lab
from operations.build import teller
from operations.drain import Rules
from operations.plan import Planner
from operations.record.journal import Journal
from operations.rolling import Rolled, RollOutcome, RollState
from operations.stack import open_stack
from operations.upgrade import addons, parts, preflight
from operations.upgrade.nodes import Nodes
from operations.upgrade.plan import GROUP, UpgradePlan, UpgradeStage, plan
from operations.upgrade.servers import Servers
from stacks.errors import StackError, StackLockedError
from stacks.events import describe, on_resource_start

_MIRROR = ("datacentre",)
"""The lab's resource that serves programs; after its update, those of both releases."""


class UpgradeProgress(Protocol):
    """See `cli.output.Steps`."""

    def step(self, name: str) -> AbstractContextManager[None]: ...

    def detail(self, text: str) -> None: ...


@dataclass(frozen=True)
class Choices:
    """An operator's options. pools: whose workers to upgrade, None for all. ready_s: time-out for each node, in seconds."""

    pools: tuple[str, ...] | None = None
    control_plane_only: bool = False
    rules: Rules = field(default_factory=Rules)
    ready_s: float = 600.0
    at_once: int = 64


def _workers_failed(plan: UpgradePlan, rolled: Rolled) -> FailedError:
    """Return the error, with the failed workers and what is left."""
    failed = [f"{outcome.host}: {outcome.text}" for outcome in rolled.outcomes if outcome.state is RollState.FAILED]
    left = [outcome.host for outcome in rolled.outcomes if outcome.state is RollState.NOT_BEGUN]
    done = sum(outcome.state is RollState.DONE for outcome in rolled.outcomes)
    lines = [f"{done} of {len(rolled.outcomes)} workers now run {plan.goal}", *failed]
    if left:
        lines.append(f"{rolled.why_stopped}; not started: {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
    return FailedError("\n  ".join(lines) + "\n" + way_on(plan), code="workers-failed")


def way_on(plan: UpgradePlan) -> str:
    """Return the commands to continue or roll back after a stop."""
    now = min(plan.running.servers, key=lambda version: version == plan.target, default=plan.target)
    back = f" (to roll back, set kubernetes.version to {now} first)" if now != plan.target else ""
    if plan.goal == f"containerd {plan.on_nodes.containerd}":
        back = " (to roll back, run the same command with the former release of Menagerie)"
    return f"To continue, fix this and run: ./menagerie upgrade {plan.cluster}{back}"


def review(
    cluster: Cluster,
    access: Access,
    choices: Choices,
    report: Report,
    backup_age: preflight.BackupAge | None = None,
) -> tuple[UpgradePlan, list[str]]:
    """Return the plan and what blocks it. Changes nothing."""
    report("reading versions")
    plan_ = plan(
        cluster,
        parts.running(cluster, access),
        choices.pools,
        control_plane_only=choices.control_plane_only,
    )
    if plan_.is_done:
        return plan_, []
    look = preflight.PreflightInputs(cluster, access, plan_, choices.rules, backup_age)
    report("checking for blockers")
    if plan_.is_begun:
        plan_ = replace(plan_, unwell=preflight.unhealthy(look))
    return plan_, [*preflight.findings(look), *_other_changes(cluster, plan_, report)]


def _other_changes(cluster: Cluster, plan: UpgradePlan, report: Report) -> Iterator[str]:
    """Yield changes that the engine would make with either version in the spec: they are unrelated to the upgrade."""
    now = next((version for version in sorted(plan.running.servers) if version != plan.target), None)
    if now is None or not plan.servers:
        return
    before = _at(cluster, now)
    if not cluster.is_lab and without_checksum(before.spec):
        return
    changed = [_changes(version, report) for version in (cluster, before)]
    # A release that was built meanwhile changes the lab's mirror with either version.
    if both := sorted(changed[0] & changed[1] - set(_MIRROR)):
        yield (
            f"the spec differs from the built cluster in more than the version: {', '.join(both[:5])}"
            f"{' …' if len(both) > 5 else ''}; apply that first: set kubernetes.version to {now} and run: "
            f"./menagerie up {plan.cluster}"
        )


def _changes(cluster: Cluster, report: Report) -> set[str]:
    if cluster.is_lab:
        # Building missing programs takes minutes, and the engine shows no progress for it.
        lab.prepare(cluster, report)
    planner = Planner.of(cluster)
    open_stack(cluster, report).preview(on_event=on_resource_start(planner.hear), refresh=False)
    return {change.name for change in planner.plan().changes}


def _at(cluster: Cluster, version: str) -> Cluster:
    kubernetes = cluster.spec.kubernetes.model_copy(update={"version": version})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"kubernetes": kubernetes})})


@dataclass
class Upgrade:
    """Executes a plan. tell: gets each finished worker."""

    cluster: Cluster
    access: Access
    plan: UpgradePlan
    choices: Choices
    operation: Journal
    steps: UpgradeProgress
    tell: Callable[[RollOutcome], None] = lambda _: None

    def run(self) -> None:
        """Run every stage in order. Raises FailedError, and KeyboardInterrupt if interrupted."""
        does = {
            UpgradeStage.SERVERS: self._servers,
            UpgradeStage.ADDONS: self._addons,
            UpgradeStage.REGION: self._region,
            UpgradeStage.WORKERS: self._workers,
        }
        if self.cluster.is_lab:
            lab.prepare(self.cluster, self.steps.detail)
        for stage in self.plan.stages:
            with self.steps.step(stage.value):
                try:
                    does[stage]()
                except StackLockedError:
                    raise
                except (StackError, TimedOutError) as error:
                    raise FailedError(f"{stage.value}: {error}\n{way_on(self.plan)}", code="upgrade-stopped") from None

    def _servers(self) -> None:
        besides = frozenset(self.plan.unwell)
        servers = Servers(self.cluster, self.access, self._engine, self.operation, besides)
        servers.replace(self.plan.servers, self.steps.detail)

    def _addons(self) -> None:
        api = self.access.api()
        addons.record_version(api, self.plan.target)
        proxy = by_digest(self.cluster.spec, kube_proxy(self.plan.target))
        addons.roll_proxy(api, self.plan.target, proxy, self.steps.detail)
        self.operation.done("kube-proxy", version=self.plan.target)

    def _region(self) -> None:
        def replaced(hosts: tuple[str, ...]) -> Mapping[str, str]:
            try:
                self._engine(hosts)
            except StackError as error:
                return dict.fromkeys(hosts, str(error))
            return {}

        # The spec does not say how many nodes the region can spare.
        self._bring(self._nodes(replaced, at_once=1, of_sites=False), self.plan.region)

    def _workers(self) -> None:
        # Its outputs have the checksums of the target release.
        access = self._engine(_MIRROR if self.cluster.is_lab else ())
        make = configure.tokens(self.cluster, access, self.steps.detail)

        def configured(hosts: tuple[str, ...]) -> Mapping[str, str]:
            work = configure.plan(self.cluster, access, configure.PlaybookRequest(limit=",".join(hosts)))
            report, _ = configure.configure(work, make, teller(len(hosts), self.steps.detail))
            if report.canceled:
                raise KeyboardInterrupt
            why = {failure.host: f"{failure.role}: {failure.task}: {failure.message}" for failure in report.failures}
            good = {host for host, result in report.hosts.items() if result.succeeded}
            return {host: why.get(host, "it was not configured") for host in hosts if host not in good}

        self._bring(self._nodes(configured, self.choices.at_once, of_sites=True), self.plan.workers)

    def _nodes(self, bring: Callable[[tuple[str, ...]], Mapping[str, str]], at_once: int, *, of_sites: bool) -> Nodes:
        look = None if of_sites else (lambda: lambda host, under_way: "")
        choices = self.choices
        return Nodes(
            self.cluster, self.access.api, bring, self.operation, choices.rules, choices.ready_s, at_once, look
        )

    def _bring(self, nodes: Nodes, hosts: tuple[str, ...]) -> None:
        rolled = nodes.bring(hosts, self.steps.detail, self.tell)
        if rolled.interrupted:
            raise KeyboardInterrupt
        if not rolled.succeeded:
            raise _workers_failed(self.plan, rolled)

    def _engine(self, names: tuple[str, ...]) -> Access:
        only = None if names == (GROUP,) else names
        stack = open_stack(self.cluster, self.steps.detail)
        _, outputs = stack.up(on_event=describe(self.steps.detail), only=only)
        return Access.from_stack(self.cluster.name, outputs)
