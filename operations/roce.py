"""Runs a RoCE measurement plan: check each port, then measure rail by rail, round by round, pair by pair."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

from clients.remote.executor import UNREACHABLE, Done, Executor, Running
from cluster.pools import Host
from network.roce import perftest, wire
from network.roce.plan import MeasurementPlan, Rail
from network.roce.results import Pair, Results
from network.roce.rounds import count
from network.roce.verdict import Blame, PairOutcome, judge

PROGRAM = "/usr/local/libexec/menagerie-roce"
PORTS = 64
"""Number of TCP ports to cycle through. Each round uses the next one, so that a hanging receiver blocks nobody."""
PATIENCE_S = 30
"""Extra time for a pair beyond its measurement, before it counts as failed."""
ATTEMPTS, PAUSE_S = 20, 0.5
"""Retries of a sender whose receiver does not listen yet."""


@dataclass(frozen=True)
class Unfit:
    """A port that is not measured. unreachable: the host did not respond."""

    host: str
    rail: str
    reason: str
    unreachable: bool = False


@dataclass(frozen=True)
class FabricReport:
    """unfit: ports that were not measured. measured: rail -> number of pairs with a result."""

    blames: tuple[Blame, ...]
    unfit: tuple[Unfit, ...]
    measured: Mapping[str, int]
    marks: Mapping[str, float]

    @property
    def ok(self) -> bool:
        return not self.blames and not self.unfit


def run(
    plan: MeasurementPlan,
    executor: Executor,
    results: Results,
    tell: Callable[[str], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> FabricReport:
    """Measure the pairs of the plan that `results` lacks, and judge all of them. tell: gets progress lines."""
    hosts = list(dict.fromkeys(host.name for rail in plan.rails for host in rail.hosts))
    unfit: list[Unfit] = []
    with ThreadPoolExecutor(max(plan.options.parallel, 1)) as pool:
        tell(f"asking {len(hosts)} hosts for their ports")
        facts_by_host = dict(zip(hosts, pool.map(lambda name: facts(executor, plan.cluster, name), hosts), strict=True))
        for rail in plan.rails:
            ports = {
                host.name: facts_by_host[host.name].get(rail.name) or facts_by_host[host.name].get("", {})
                for host in rail.hosts
            }
            unfit += [_unfit(rail, name, port) for name, port in ports.items() if _reason(port)]
            usable = {name: port for name, port in ports.items() if not _reason(port)}
            _Rounds(plan, rail, usable, executor, sleep).run(pool, results, tell)
    return report(plan, results, tuple(unfit))


def facts(executor: Executor, cluster: str, host: str) -> dict[str, Any]:
    """Return rail -> facts of its port, from the host's own program; {"": ...} if there are none."""
    done = executor.start(host, [PROGRAM, "facts"]).wait(PATIENCE_S)
    try:
        parsed = json.loads(done.text[done.text.index("{") :]) if done.code == 0 else None
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    reason = done.reason
    if done.code == 127:
        reason = f"{PROGRAM} is missing; run: ./menagerie configure {cluster} --tags roce --limit {host}"
    return {"": {"refused": reason, "unreachable": done.code in (UNREACHABLE, 124)}}


def _reason(port: Mapping[str, Any]) -> str:
    if not port:
        return "the host has no such rail; apply the role roce to it again"
    if "refused" in port:
        return str(port["refused"])
    if port["state"] != "ACTIVE":
        return f"{port['interface']} is {port['state'] or 'in an unknown state'}, not ACTIVE: check cable and switch"
    return "" if port["gbit_s"] else f"{port['interface']} has no speed: its link is down"


def _unfit(rail: Rail, name: str, port: Mapping[str, Any]) -> Unfit:
    return Unfit(name, rail.key, _reason(port), bool(port.get("unreachable")))


@dataclass(frozen=True)
class _Rounds:
    """The rounds of one rail. ports: host -> facts of its port, for hosts that take part."""

    plan: MeasurementPlan
    rail: Rail
    ports: Mapping[str, Mapping[str, Any]]
    executor: Executor
    sleep: Callable[[float], None]

    def run(self, pool: ThreadPoolExecutor, results: Results, tell: Callable[[str], None]) -> None:
        """Measure what is not in `results` yet. A round starts when the previous one has ended."""
        rail, limit = self.rail, self.plan.options.most
        total = min(count(len(rail.hosts)), limit or count(len(rail.hosts)))
        for number, pairs in enumerate(rail.rounds(limit)):
            due = [pair for pair in pairs if self._is_due(pair, results)]
            if due:
                tell(f"rail {rail.key}: round {number + 1} of {total}, {len(due)} pairs")
            at = perftest.PORT + number % PORTS
            for future in as_completed([pool.submit(self._measure, *pair, at) for pair in due]):
                results.add(future.result())

    def _is_due(self, pair: tuple[Host, Host], results: Results) -> bool:
        names = [host.name for host in pair]
        return all(name in self.ports for name in names) and not results.has(self.rail.key, *names)

    def _measure(self, sender: Host, receiver: Host, at: int) -> Pair:
        patience = self.plan.options.seconds + PATIENCE_S
        slower = min(self.ports[host.name]["gbit_s"] for host in (sender, receiver))
        no_result = Pair(self.rail.key, sender.name, receiver.name, line_gbit_s=float(self.rail.roce.gbit_s or slower))
        serving = self.executor.start(receiver.name, self._words(receiver, at))
        try:
            done = self._sent(sender, (*self._words(sender, at), str(receiver.address)), patience)
            measured = perftest.parse(done.text)
        except perftest.PerftestError as error:
            receiver_error = _receiver_error(serving) if perftest.CONNECT.search(done.text) else ""
            return replace(no_result, error=receiver_error or str(error))
        finally:
            serving.stop()
        return replace(no_result, gbit_s=round(measured.gbit_s, 2), mtu=measured.mtu)

    def _sent(self, sender: Host, words: Sequence[str], patience: float) -> Done:
        """Run the sender; retry while the receiver does not listen yet."""
        for _ in range(ATTEMPTS):
            done = self.executor.start(sender.name, words).wait(patience)
            if not perftest.CONNECT.search(done.text):
                break
            self.sleep(PAUSE_S)
        return done

    def _words(self, host: Host, at: int) -> tuple[str, ...]:
        port, options = self.ports[host.name], self.plan.options
        program = perftest.command(
            port["rdma"],
            port["port"],
            port["gid_index"],
            self.rail.roce.tos,
            seconds=options.seconds,
            message=options.message,
            queues=options.queues,
            at=at,
        )
        # With timeout(1), the program ends on the host even if this process is gone.
        return ("timeout", str(options.seconds + PATIENCE_S), *program)


def _receiver_error(serving: Running) -> str:
    """Return why the receiver did not listen, if it has ended."""
    done = serving.wait(1)
    return "" if done.code in (0, 124) else f"the receiver: {perftest.reason(done.text)}"


def report(plan: MeasurementPlan, results: Results, unfit: Iterable[Unfit] = ()) -> FabricReport:
    """Return the report on the results."""
    blames: list[Blame] = []
    marks: dict[str, float] = {}
    measured: dict[str, int] = {}
    for site in dict.fromkeys(rail.site for rail in plan.rails):
        here = [rail for rail in plan.rails if rail.site == site]
        mtu = here[0].roce.mtu
        mark = wire.mark(mtu, plan.options.message)
        outcomes = []
        for rail in here:
            own = [pair for pair in results.pairs.values() if pair.rail == rail.key]
            measured[rail.key] = sum(not pair.error for pair in own)
            marks[rail.key] = mark
            outcomes += [PairOutcome(p.rail, p.sender, p.receiver, p.share, p.error, p.mtu) for p in own]
        blames += judge(outcomes, mark, mtu)
    return FabricReport(tuple(blames), tuple(unfit), measured, marks)
