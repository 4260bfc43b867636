"""Reboots of hosts of sites: drained, awaited, given back, one after another.

What a killed run left is on the nodes: the mark of `operations.drain`.
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
from clients.waiting import Report, held_back, is_ready, verdict, wait_until
from cluster import preflight
from cluster.errors import FailedError, TimedOutError, UnreachableError
from cluster.spec import Cluster
from operations.drain import Mark, Pause, Rules, cordon, empty, uncordon, way_out
from operations.reboot_needs import ASK_S, BY, Found, Plan, all_nodes, ask, found_of
from operations.rolling import Outcome, Roll, Rolled, State, room
from operations.ssh import ssh_to
from operations.turns import alone

BACK_S = 1800.0
"""For a host to be back: large machines check their memory and their cards for many minutes."""
# A timer, so that the answer comes before ssh ends. An earlier run's order may have been carried out while the node was
# drained: then this one is for a boot that is over.
_TIMER = "systemd-run --quiet --collect --on-active=1s --timer-property=AccuracySec=100ms"
_REBOOT = f'test "$(cat /proc/sys/kernel/random/boot_id)" != "$0" || exec {_TIMER} systemctl reboot'


class RebootError(Exception):
    """A host did not come back as it should; the text says what to do next."""


def reboots_error(plan: Plan, rolled: Rolled) -> FailedError | UnreachableError:
    """Not all hosts that need a reboot had one."""
    failed = [outcome for outcome in rolled.outcomes if outcome.state is State.FAILED]
    left = [outcome.host for outcome in rolled.outcomes if outcome.state is State.NOT_BEGUN]
    done = sum(outcome.state is State.DONE for outcome in rolled.outcomes)
    lines = [f"{done} of {len(rolled.outcomes)} hosts rebooted"]
    lines += [f"{outcome.host}: {outcome.text}" for outcome in failed]
    lines += [f"{each.host}: {each.failed}" for each in plan.failed]
    if left:
        lines.append(f"{rolled.why_stopped}; not begun: {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
    text = "\n  ".join(lines)
    if rolled.succeeded and all(each.unreachable for each in plan.failed):
        return UnreachableError(text, code="workers-unreachable")
    return FailedError(text, code="workers-failed")


@contextmanager
def session(cluster: Cluster, access: Access) -> Iterator[Executor]:
    """Programs on the cluster's hosts, while no other run works on them.

    Raises StackLockedError while `configure` or another reboot works on the same cluster's workers.
    """
    with alone(STATE / cluster.name, "workers", "configured or rebooted"), ssh_to(cluster, access) as executor:
        yield executor


def run(
    plan: Plan, rebooter: Rebooter, at_once: int, detail: Callable[[str], None], tell: Callable[[Outcome], None]
) -> Rolled:
    """Reboot what needs it, `at_once` at most, and never more of a pool than `max_unavailable`.

    detail: what goes on, from several threads. tell: gets each host as it ends.
    """
    known = {each.host: each for each in plan.found}
    api = rebooter.api()

    def work(host: str, pause: Pause) -> str:
        return rebooter.reboot(known[host], lambda text: detail(text if host in text else f"{host} {text}"), pause)

    return Roll(plan.hosts, work, room(rebooter.cluster, lambda: all_nodes(api)), at_once, tell).run()


@dataclass(frozen=True)
class Rebooter:
    """Reboots one host, whatever an earlier run did of it already. api: makes a client, which threads don't share.

    back_s: how long a host is waited for, in seconds; for its answer, and for its node.
    """

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    executor: Executor
    rules: Rules = field(default_factory=Rules)
    back_s: float = BACK_S

    def reboot(self, found: Found, report: Report, pause: Pause = time.sleep) -> str:
        """From cordon to uncordon. Gives what is to be known of the host.

        Raises DrainTimedOutError, after which the node is in service again, and RebootError, after which it is not.
        """
        api, host = self.api(), found.host
        cordon(api, host, Mark(BY, "; ".join(found.reasons)))
        # What an earlier run began with may have booted since, or be about to.
        now = self._answer(host, report, pause) if found.mark else found
        leaves = ""
        if now.reasons:
            leaves = now.boot_id
            self._empty(api, host, report, pause)
            report("boots")
            done = self.executor.start(host, order(leaves)).wait(ASK_S)
            # Unreachable: it may be on its way down already, by a run that was killed.
            if done.code not in (0, UNREACHABLE):
                raise RebootError(
                    f"{host} takes no order to boot: {done.reason}. Its node is empty and stays cordoned. Then {way_out(host)}"
                )
        now = self.back(api, host, leaves, report, pause)
        if now.reasons:
            raise RebootError(
                f"{host} was booted anew and still needs a reboot: {'; '.join(now.reasons)}. Its node stays cordoned: see what "
                f"its boot loader started (cat /proc/cmdline). Then {way_out(host)}"
            )
        uncordon(api, host, BY)
        return "; ".join(now.notes)

    def _empty(self, api: client.ApiClient, host: str, report: Report, pause: Pause) -> None:
        empty(api, host, BY, self.rules, report, pause)
        if not _node(api, host).spec.unschedulable:
            uncordon(api, host, BY)
            raise RebootError(f"somebody uncordoned {host} while it was drained; it was not rebooted")

    def _answer(self, host: str, report: Report, pause: Pause, after: str = "") -> Found:
        """What the host says, once it says something; by another boot than `after`."""
        answers: list[Found] = []

        def missing() -> str:
            told = ask(self.executor, host)
            if isinstance(told, tuple):
                return f"{host} does not answer: {told[0]}"
            answers.append(found_of(host, "", None, told))
            return f"{host} has not gone down yet" if answers[-1].boot_id == after else ""

        self._wait(host, missing, report, pause)
        return answers[-1]

    def back(self, api: client.ApiClient, host: str, after: str, report: Report, pause: Pause) -> Found:
        """Wait until the host is up by another boot than `after`, and its node Ready and free. Raises RebootError."""
        now = self._answer(host, report, pause, after)
        self._wait(host, lambda: _not_ready(api, host, now.boot_id), report, pause)
        pool = next(pool for pool, each in self.cluster.host_list() if each.name == host)
        if preflight.checked(self.cluster.spec.pools[pool]):
            self._wait(host, lambda: _not_free(api, host, now.booted_at), report, pause)
        return now

    def _wait(self, host: str, missing: Callable[[], str], report: Report, pause: Pause) -> None:
        try:
            wait_until(missing, self.back_s, report, every_s=1.0, pause=pause)
        except TimedOutError as error:
            raise RebootError(
                f"{host}: {error}. Its node stays cordoned: look at the machine's console, by its BMC. Then {way_out(host)}"
            ) from None


def order(boot_id: str) -> tuple[str, ...]:
    """The command that reboots a host, if it still runs by this boot."""
    return ("sh", "-c", _REBOOT, boot_id)


def _node(api: client.ApiClient, host: str) -> client.V1Node:
    return client.CoreV1Api(api).read_node(host, _request_timeout=API_TIMEOUT_S)


def _not_ready(api: client.ApiClient, host: str, boot_id: str) -> str:
    """A kubelet tells the boot that it runs in with its first status; until then the node is as it was left."""
    try:
        node = _node(api, host)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({type(error).__name__})"
    if node.status.node_info.boot_id != boot_id:
        return f"{host} is up, and its kubelet has not said anything since"
    return "" if is_ready(node) else f"{host} is up, and its node not Ready yet"


def _not_free(api: client.ApiClient, host: str, booted_at: float) -> str:
    """A good verdict from before the boot says nothing of what came back; the times are both of the host's clock."""
    try:
        node = _node(api, host)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({type(error).__name__})"
    found = verdict(node)
    # A heartbeat has whole seconds.
    if found is None or found.last_heartbeat_time is None or found.last_heartbeat_time.timestamp() < int(booted_at):
        return f"preflight has not said anything of {host} since it booted"
    if found.status != "True":
        return f"preflight of {host} says {found.reason}: {found.message}"
    why = held_back(node)
    return f"{host}: {why}" if why else ""
