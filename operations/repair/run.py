"""Repairs broken hosts one after another: cordon with a mark, drain, repair, uncordon.

A killed run leaves its state on the nodes (the mark of `operations.drain`) and in the cluster (`records`,
`operations.removals`), so it can be resumed from any machine. A host that can't be repaired does not block the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.api_errors import cause_of
from clients.remote.executor import UNREACHABLE
from clients.timeouts import HOST_COMMAND_S
from clients.waiting import Report, wait_until
from cluster.errors import TimedOutError
from cluster.quantities import format_duration_ms
from operations import removals
from operations.breaker import Removal, decide
from operations.drain import (
    DrainMark,
    DrainTimedOutError,
    OutOfServiceError,
    Pause,
    PodFate,
    Rules,
    cordon,
    drain,
    fate,
    pods_on,
    uncordon,
)
from operations.reboot import Rebooter, RebootError, order
from operations.reboot_needs import read_report
from operations.removals import NoRoomError
from operations.repair import records
from operations.repair.actuators import HandsError, Power, Replacer
from operations.repair.health import bad
from operations.repair.look import BY, Case, CheckInputs, RepairPlan, RepairStep, see, worn_off
from operations.repair.records import RepairRecord
from operations.rolling import Roll, Rolled, WhyNot, room

_MARK_TIME = "%Y-%m-%dT%H:%M:%S%z"


class RepairEnd(StrEnum):
    """The result for a host."""

    MENDED = "mended"
    POSTPONED = "postponed"
    """Its pods must not leave yet, or it has to wait for others; the next run continues."""
    FAILED = "failed"
    """It did not come back healthy; the next run tries a stronger repair."""
    TICKET = "ticket"


@dataclass(frozen=True)
class RepairResult:
    """text: notes about the host, or what a person has to do."""

    host: str
    end: RepairEnd
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Tools:
    """Tools for repairs. reinstall: reinstalls and configures a machine; raises HandsError if it can't."""

    rebooter: Rebooter
    power: Power
    replacer: Replacer
    reinstall: Callable[[str, Report], None]
    rules: Rules = field(default_factory=Rules)


class Repairs:
    """A run over a plan's allowed cases. tell: gets each host's result when it ends."""

    def __init__(
        self, around: CheckInputs, tools: Tools, tell: Callable[[RepairResult], None] = lambda _: None
    ) -> None:
        self._around = around
        self._tools = tools
        self._tell = tell
        self._settings = around.cluster.spec.repair
        self.results: dict[str, RepairResult] = {}

    def run(self, plan: RepairPlan, chosen: Sequence[Case], report: Report) -> Rolled:
        """Repair the chosen cases of a plan, one after another. Each starts only if the brakes still allow it."""
        cases = {case.host: case for case in chosen}
        pools = {case.host: case.pool for case in plan.cases}
        sites = {host.name for _, host in self._around.cluster.host_list()}

        def work(host: str, pause: Pause) -> str:
            result = self._repair(cases[host], lambda text: report(text if host in text else f"{host} {text}"), pause)
            self.results[host] = result
            self._tell(result)
            return result.text

        def look() -> WhyNot:
            try:
                snapshot = see(self._around)
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                reason = f"the API server does not respond ({cause_of(error)})"
                return lambda host, under_way: reason
            waiting = [host for host in pools if host not in self.results]
            decision = decide(snapshot.fleet, waiting, self._around.limits)
            of_pool = room(self._around.cluster, lambda: list(snapshot.nodes.values()))()
            return lambda host, under_way: decision.why_not(host) or (of_pool(host, under_way) if host in sites else "")

        return Roll(tuple(cases), work, look).run()

    def _repair(self, case: Case, report: Report, pause: Pause) -> RepairResult:
        api = self._around.api()
        try:
            if case.mark is None:
                self._take(api, case)
            mark = cordon(api, case.host, DrainMark(BY, case.why))
            if case.step is not RepairStep.GIVE_BACK and (left := self._empty(api, case, mark, report, pause)):
                return RepairResult(case.host, RepairEnd.POSTPONED, left)
            if case.step is RepairStep.TICKET:
                attempts = case.record.attempts
                raise HandsError(f"{case.why}" + (f"; {attempts} repairs did not last" if attempts else ""))
            return self._bring_back(api, case, report, pause)
        except (NoRoomError, OutOfServiceError) as error:
            return RepairResult(case.host, RepairEnd.POSTPONED, str(error))
        except HandsError as error:
            return self._ticket(api, case, str(error))
        except (RebootError, TimedOutError) as error:
            why = str(error)
            record = records.note(api, case.host, lambda record: replace(record.tried(), why=why))
            if record.attempts > self._settings.retries:
                return self._ticket(api, case, f"{record.attempts} repairs did not help: {error}")
            return RepairResult(case.host, RepairEnd.FAILED, str(error))

    def _take(self, api: client.ApiClient, case: Case) -> None:
        snapshot = see(self._around)
        removals.take(api, Removal(case.host, snapshot.fleet.now, BY), self._around.limits, len(snapshot.fleet.members))

    def _ticket(self, api: client.ApiClient, case: Case, why: str) -> RepairResult:
        records.note(api, case.host, lambda record: replace(record, ticket=why, boot="", acted=0.0))
        cluster = self._around.cluster.name
        return RepairResult(
            case.host,
            RepairEnd.TICKET,
            f"{why}. It stays out of service; when it is fixed, run: ./menagerie repair {cluster} --retry {case.host}",
        )

    def _empty(self, api: client.ApiClient, case: Case, mark: DrainMark, report: Report, pause: Pause) -> str:
        """Drain the node. Return why it is not empty yet, "" if it is. After the hard limit, delete the remaining pods."""
        rules = replace(self._tools.rules, kubelet_answers=case.ready)
        try:
            drain(api, case.host, rules, report, pause)
        except (DrainTimedOutError, OutOfServiceError) as error:
            if self._keeps_data(case):
                return f"{error}. It stays cordoned: it stores others' data, so there is no time limit for Ceph's disruption budgets"
            limit_s = self._settings.drain_hard_limit / 1000
            if time.time() - _since(mark) < limit_s:
                limit = format_duration_ms(self._settings.drain_hard_limit)
                return f"{error}. It stays cordoned; {limit} after the cordon, these pods are deleted"
            for pod in pods_on(api, case.host):
                if fate(pod, rules)[0] is not PodFate.STAYS:
                    report(
                        f"deleting {pod.metadata.namespace}/{pod.metadata.name}: the hard limit of the drain has passed"
                    )
                    _delete(api, pod)
            with suppress(DrainTimedOutError):
                drain(api, case.host, replace(rules, unmanaged=True, empty_dir=True), report, pause)
        if not _node(api, case.host).spec.unschedulable:
            uncordon(api, case.host, BY)
            return "someone uncordoned it while it was being drained; it was not repaired"
        return ""

    def _keeps_data(self, case: Case) -> bool:
        spec = self._around.cluster.spec
        pool = spec.pools.get(case.pool)
        site = spec.sites.get(pool.site or "") if pool else None
        return bool(site and site.ceph and case.pool in site.ceph.hosts)

    def _bring_back(self, api: client.ApiClient, case: Case, report: Report, pause: Pause) -> RepairResult:
        node, text = _node(api, case.host), "became healthy without a repair"
        # An installation resumes from its own journal.
        has_acted = case.record.acted and case.step is not RepairStep.REINSTALL
        if has_acted and (case.step is RepairStep.GIVE_BACK or not self._is_over(case.record)):
            silent = isinstance(self._ask(case.host), tuple)
            if silent and self._tools.power.has(case.host):
                self._tools.power.on(case.host, pause)
            text = self._await(api, case, case.record.boot, report, pause)
        # It may have recovered, or someone may have fixed it, while it was drained.
        elif bad_conditions := bad(node, self._settings):
            if case.step is RepairStep.GIVE_BACK:
                conditions = ", ".join(f"{condition.type} is {condition.status}" for _, condition in bad_conditions)
                return RepairResult(
                    case.host,
                    RepairEnd.POSTPONED,
                    f"was about to return to service, but is unhealthy again: {conditions}",
                )
            if case.step is RepairStep.REPLACE:
                self._tools.replacer.replace(node, report)
                records.forget(api, [case.host])
                return RepairResult(case.host, RepairEnd.MENDED, "replaced")
            text = self._await(api, case, self._act(api, case, node, report, pause), report, pause)
        uncordon(api, case.host, BY)
        healed = see(self._around).fleet.now
        records.note(api, case.host, lambda record: replace(record.tried(), healed=healed, why=case.why))
        return RepairResult(case.host, RepairEnd.MENDED, text)

    def _is_over(self, record: RepairRecord) -> bool:
        """Return whether a machine that a repair restarted should be back by now."""
        return time.time() - record.acted >= self._settings.node_startup / 1000

    def _await(self, api: client.ApiClient, case: Case, after: str, report: Report, pause: Pause) -> str:
        """Wait until the host runs in another boot, its node accepts pods, and nothing is wrong with it. Return notes."""
        report("waiting for it to come back")
        rebooter = self._tools.rebooter
        notes = rebooter.back(api, case.host, after, report, pause).notes

        def missing() -> str:
            try:
                bad_conditions = bad(_node(api, case.host), self._settings)
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                return f"the API server does not respond ({type(error).__name__})"
            return ", ".join(f"{condition.type} is still {condition.status}" for _, condition in bad_conditions)

        wait_until(missing, rebooter.back_s, report, pause=pause)
        return "; ".join((str(case.step), *notes))

    def _act(self, api: client.ApiClient, case: Case, node: client.V1Node, report: Report, pause: Pause) -> str:
        """Start the repair. Return the ID of the boot that it ends."""
        reply = self._ask(case.host)
        boot = str(node.status.node_info.boot_id if isinstance(reply, tuple) else reply["boot_id"])
        report(f"{case.step}")
        if case.step is RepairStep.REINSTALL:
            self._note_act(api, case.host, boot)
            self._tools.reinstall(case.host, report)
        elif case.step is RepairStep.REBOOT and not isinstance(reply, tuple):
            self._note_act(api, case.host, boot)
            done = self._tools.rebooter.executor.start(case.host, order(boot)).wait(HOST_COMMAND_S)
            if done.code not in (0, UNREACHABLE):
                raise RebootError(f"the command to reboot {case.host} failed: {done.reason}")
        else:
            self._cycle(api, case.host, boot, reply, pause)
        return boot

    def _ask(self, host: str) -> dict[str, Any] | tuple[str, bool]:
        return read_report(self._tools.rebooter.executor, self._around.cluster.name, host)

    def _cycle(self, api: client.ApiClient, host: str, boot: str, reply: object, pause: Pause) -> None:
        power = self._tools.power
        if not power.has(host):
            ssh_state = reply[0] if isinstance(reply, tuple) else "it responds to ssh"
            raise HandsError(f"power-cycle it by hand: it has no BMC in the spec ({ssh_state})")
        power.off(host, pause)
        self._note_act(api, host, boot)
        power.on(host, pause)

    def _note_act(self, api: client.ApiClient, host: str, boot: str) -> None:
        records.note(api, host, lambda record: replace(record, boot=boot, acted=time.time(), healed=0.0))


def keep(around: CheckInputs, plan: RepairPlan) -> None:
    """Store the results of a check for the next one: that all nodes have gone or are back, and repairs to forget."""
    api = around.api()
    if plan.decision.paused != plan.snapshot.fleet.paused:
        removals.pause(api, plan.decision.paused)
    if old := worn_off(around.cluster.spec.repair, plan.snapshot, records.repair_records(api)):
        records.forget(api, old)


def retry(around: CheckInputs, host: str) -> RepairRecord:
    """Allow repairs of a host again. Return its former record."""
    api = around.api()
    record = records.repair_records(api).get(host, RepairRecord())
    records.forget(api, [host])
    return record


def _node(api: client.ApiClient, host: str) -> client.V1Node:
    return client.CoreV1Api(api).read_node(host, _request_timeout=API_TIMEOUT_S)


def _delete(api: client.ApiClient, pod: client.V1Pod) -> None:
    meta = pod.metadata
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=meta.uid))
    with suppress(ApiException):
        client.CoreV1Api(api).delete_namespaced_pod(
            meta.name, meta.namespace, body=options, _request_timeout=API_TIMEOUT_S
        )


def _since(mark: DrainMark) -> float:
    """Return the mark's Unix time, now if it has none."""
    try:
        return datetime.strptime(mark.since, _MARK_TIME).timestamp()
    except ValueError:
        return time.time()
