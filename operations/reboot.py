"""Rolling reboot of hosts at sites: drain, reboot, wait, uncordon, one after another.

A killed run leaves its state on the nodes: the mark of `operations.drain`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S, STATE, Access
from clients.remote.executor import UNREACHABLE, Executor
from clients.timeouts import HOST_COMMAND_S
from clients.waiting import Report, held_back, is_ready, verdict, wait_until
from cluster import preflight
from cluster.errors import FailedError, TimedOutError, UnreachableError
from cluster.spec import Cluster
from operations.drain import DrainMark, Pause, Rules, cordon, empty, uncordon, way_out
from operations.machines_lock import alone
from operations.reboot_needs import BY, RebootNeed, RebootPlan, all_nodes, read_report, reboot_need
from operations.rolling import Roll, Rolled, RollOutcome, RollState, room
from operations.ssh import ssh_to

BACK_S = 1800.0
"""How long to wait for a host: large machines check their memory and their cards for many minutes."""
# A timer, so that the command returns before ssh is cut. A killed run's command may have rebooted the host while the node was
# drained; the boot ID then differs, and this command does nothing.
_TIMER = "systemd-run --quiet --collect --on-active=1s --timer-property=AccuracySec=100ms"
_REBOOT = f'test "$(cat /proc/sys/kernel/random/boot_id)" != "$0" || exec {_TIMER} systemctl reboot'


class RebootError(FailedError):
    """A host did not come back properly; the text says what to do next."""

    code = "workers-failed"


def reboots_error(plan: RebootPlan, rolled: Rolled) -> FailedError | UnreachableError:
    """Return the error for hosts that need a reboot and were not rebooted."""
    failed = [outcome for outcome in rolled.outcomes if outcome.state is RollState.FAILED]
    left = [outcome.host for outcome in rolled.outcomes if outcome.state is RollState.NOT_BEGUN]
    done = sum(outcome.state is RollState.DONE for outcome in rolled.outcomes)
    lines = [f"{done} of {len(rolled.outcomes)} hosts rebooted"]
    lines += [f"{outcome.host}: {outcome.text}" for outcome in failed]
    lines += [f"{host.host}: {host.failed}" for host in plan.failed]
    if left:
        lines.append(f"{rolled.why_stopped}; not started: {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
    text = "\n  ".join(lines)
    if rolled.succeeded and all(host.unreachable for host in plan.failed):
        return UnreachableError(text, code="workers-unreachable")
    return FailedError(text, code="workers-failed")


@contextmanager
def session(cluster: Cluster, access: Access) -> Iterator[Executor]:
    """Lock the cluster's workers and yield an executor for them.

    Raises StackLockedError while `configure` or another reboot works on the same cluster's workers.
    """
    with alone(STATE / cluster.name, "workers", "configured or rebooted"), ssh_to(cluster, access) as executor:
        yield executor


def run(
    plan: RebootPlan,
    rebooter: Rebooter,
    at_once: int,
    detail: Callable[[str], None],
    tell: Callable[[RollOutcome], None],
) -> Rolled:
    """Reboot the hosts that need it, at most `at_once` in parallel and at most `max_unavailable` of a pool.

    detail: gets progress, from several threads. tell: gets each finished host.
    """
    by_host = {host_state.host: host_state for host_state in plan.needs}
    api = rebooter.api()

    def work(host: str, pause: Pause) -> str:
        return rebooter.reboot(by_host[host], lambda text: detail(text if host in text else f"{host} {text}"), pause)

    return Roll(plan.hosts, work, room(rebooter.cluster, lambda: all_nodes(api)), at_once, tell).run()


@dataclass(frozen=True)
class Rebooter:
    """Reboots one host, and resumes an earlier run's reboot. api: creates a client, which threads don't share.

    back_s: how long to wait for the host to respond, and again for its node, in seconds.
    """

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    executor: Executor
    rules: Rules = field(default_factory=Rules)
    back_s: float = BACK_S

    def reboot(self, before: RebootNeed, report: Report, pause: Pause = time.sleep) -> str:
        """Reboot a host, from cordon to uncordon. Return notes about it.

        Raises DrainTimedOutError: the node is back in service; or RebootError: the node stays cordoned.
        """
        api, host = self.api(), before.host
        cordon(api, host, DrainMark(BY, "; ".join(before.reasons)))
        # A host that an earlier run started with may have rebooted since, or be about to.
        now = self._answer(host, report, pause) if before.mark else before
        leaves = ""
        if now.reasons:
            leaves = now.boot_id
            self._empty(api, host, report, pause)
            report("rebooting")
            done = self.executor.start(host, order(leaves)).wait(HOST_COMMAND_S)
            # Unreachable: it may be shutting down already because of a killed run.
            if done.code not in (0, UNREACHABLE):
                raise RebootError(
                    f"the command to reboot {host} failed: {done.reason}. Its node is empty and stays cordoned. Fix the host, "
                    f"then {way_out(host)}"
                )
        now = self.back(api, host, leaves, report, pause)
        if now.reasons:
            raise RebootError(
                f"{host} has rebooted and still needs a reboot: {'; '.join(now.reasons)}. Its node stays cordoned. Check what its "
                f"boot loader started (cat /proc/cmdline), then {way_out(host)}"
            )
        uncordon(api, host, BY)
        return "; ".join(now.notes)

    def _empty(self, api: client.ApiClient, host: str, report: Report, pause: Pause) -> None:
        empty(api, host, BY, self.rules, report, pause)
        if not _node(api, host).spec.unschedulable:
            uncordon(api, host, BY)
            raise RebootError(f"someone uncordoned {host} while it was being drained; it was not rebooted")

    def _answer(self, host: str, report: Report, pause: Pause, after: str = "") -> RebootNeed:
        """Wait for the host to report from a boot other than `after`; return its report."""
        answers: list[RebootNeed] = []

        def missing() -> str:
            reply = read_report(self.executor, self.cluster.name, host)
            if isinstance(reply, tuple):
                return f"{host} does not respond: {reply[0]}"
            answers.append(reboot_need(self.cluster, host, "", None, reply))
            return f"{host} has not shut down yet" if answers[-1].boot_id == after else ""

        self._wait(host, missing, report, pause)
        return answers[-1]

    def back(self, api: client.ApiClient, host: str, after: str, report: Report, pause: Pause) -> RebootNeed:
        """Wait until the host runs in a boot other than `after`, and its node is Ready and untainted. Raises RebootError."""
        now = self._answer(host, report, pause, after)
        self._wait(host, lambda: _not_ready(api, host, now.boot_id), report, pause)
        pool = next(pool for pool, machine in self.cluster.host_list() if machine.name == host)
        if preflight.checked(self.cluster.spec.pools[pool]):
            self._wait(host, lambda: _not_free(api, host, now.booted_at), report, pause)
        return now

    def _wait(self, host: str, missing: Callable[[], str], report: Report, pause: Pause) -> None:
        try:
            wait_until(missing, self.back_s, report, every_s=1.0, pause=pause)
        except TimedOutError as error:
            raise RebootError(
                f"{host}: {error}. Its node stays cordoned. Look at the machine's console through its BMC, then {way_out(host)}"
            ) from None


def order(boot_id: str) -> tuple[str, ...]:
    """Return the command that reboots a host if it still runs in this boot."""
    return ("sh", "-c", _REBOOT, boot_id)


def _node(api: client.ApiClient, host: str) -> client.V1Node:
    return client.CoreV1Api(api).read_node(host, _request_timeout=API_TIMEOUT_S)


def _not_ready(api: client.ApiClient, host: str, boot_id: str) -> str:
    """Return why the node is not Ready. The kubelet's first status has the new boot ID; until then the node's is stale."""
    try:
        node = _node(api, host)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not respond ({type(error).__name__})"
    if node.status.node_info.boot_id != boot_id:
        return f"{host} is up, but its kubelet has not reported since"
    return "" if is_ready(node) else f"{host} is up, but its node is not Ready yet"


def _not_free(api: client.ApiClient, host: str, booted_at: float) -> str:
    """Return why the node is not free. A verdict from before the boot does not count; both times are from the host's clock."""
    try:
        node = _node(api, host)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not respond ({type(error).__name__})"
    result = verdict(node)
    # Heartbeats have whole seconds.
    if result is None or result.last_heartbeat_time is None or result.last_heartbeat_time.timestamp() < int(booted_at):
        return f"preflight has not reported on {host} since it booted"
    if result.status != "True":
        return f"preflight of {host} reports {result.reason}: {result.message}"
    why = held_back(node)
    return f"{host}: {why}" if why else ""
