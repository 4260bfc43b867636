"""Machines from bare iron, as an operator's verbs have it: secrets, what is a node already, what is served, batches."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import urllib3

from clients.access import STATE, NotBuiltError
from cluster.errors import FailedError, RefusedError, UnreachableError
from cluster.reading import read_bytes
from cluster.spec import Cluster
from cluster.writing import write
from inventories.batches import Amount, batches, stops
from operations.bmcs import Seen, by_site, look
from operations.provisioning import known_hosts, render
from operations.provisioning.install import Connect, Installation, Result, Waits, Watch
from operations.provisioning.journal import Journal, Stage
from operations.provisioning.machines import Machine, every
from operations.provisioning.redfish import Kind
from operations.provisioning.reports import Reports, listening
from operations.stack import access_to
from operations.turns import alone

KNOWN_HOSTS = Path("~/.ssh/known_hosts")
"""Where ssh, and so Ansible, looks for hosts that no provider knows."""
_FETCH_S = 10
_FETCHES = 8
"""Files that are asked of a server at once."""
_SHOWN = 8


class MachinesError(RefusedError):
    """Machines that must not be installed, and why; nothing was touched."""

    code = "machines-refused"


def not_installed(outcome: Outcome) -> FailedError | UnreachableError:
    """Some machines were not installed."""
    broken = [result for result in outcome.results if result.stage is not Stage.DONE]
    done = len(outcome.results) - len(broken)
    lines = [f"{done} of {len(outcome.results)} machines done"]
    lines += [f"{result.machine.name} ({result.machine.rack}): {result.why}" for result in broken]
    if outcome.not_begun:
        lines.append(f"{outcome.why_stopped}; not begun: {', '.join(outcome.not_begun)}")
    text = "\n  ".join(lines) + "\nRun the same command again when they are mended; it goes on from here."
    if broken and all(result.unreachable for result in broken):
        return UnreachableError(text, code="machines-unreachable")
    return FailedError(text, code="machines-failed")


@dataclass(frozen=True)
class Outcome:
    """How a run over machines ended."""

    results: tuple[Result, ...]
    left_out: tuple[str, ...] = ()
    not_begun: tuple[str, ...] = ()
    why_stopped: str = ""

    @property
    def succeeded(self) -> bool:
        return not self.not_begun and all(result.stage is Stage.DONE for result in self.results)

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        shown = [
            {
                "name": one.machine.name,
                "site": one.machine.site,
                "rack": one.machine.rack,
                "stage": str(one.stage),
                "seconds": round(one.seconds, 1),
                "why": one.why,
            }
            for one in self.results
        ]
        return {"machines": shown, "left_out": list(self.left_out), "not_begun": list(self.not_begun)}


@dataclass(frozen=True)
class Plan:
    """What an installation comes to. seen: those with a BMC, asked just now. left_out: an earlier run installed them.

    unasked: servers whose files could not be compared from here.
    """

    machines: tuple[Machine, ...]
    left_out: tuple[str, ...]
    seen: tuple[Seen, ...]
    unasked: tuple[str, ...]

    @property
    def unfit(self) -> tuple[Seen, ...]:
        return tuple(one for one in self.seen if not one.is_well)

    @property
    def to_install(self) -> tuple[Machine, ...]:
        unfit = {one.machine.name for one in self.unfit}
        return tuple(one for one in self.machines if one.name not in unfit)


def plan(cluster: Cluster, machines: Sequence[Machine], connect: Connect, *, again: bool) -> Plan:
    """Which machines may be installed. MachinesError where the whole run must not begin. Nothing is changed."""
    journal = Journal(_journal(cluster.name))
    stages = {one.name: journal.of(one).stage for one in machines}
    wanted = tuple(one for one in machines if again or stages[one.name] is not Stage.DONE)
    left_out = tuple(one.name for one in machines if one not in wanted)
    for site, own in by_site(wanted).items():
        if not (own[0].settings.bmc or own[0].settings.reports):
            raise MachinesError(
                f"nothing would tell when a machine of {site} is installed: its provisioning has neither bmc nor reports"
            )
    if not again and (joined := nodes(cluster) & {one.name for one in wanted}):
        raise MachinesError(
            f"nodes of {cluster.name} already: {_names(joined)}; drain and delete them, and say --again to install them anew"
        )
    wrong, unasked = stale(wanted)
    if wrong:
        raise MachinesError(
            f"what is served for {_names(wrong)} isn't what the spec says; write it anew and copy it to the server: "
            f"./menagerie machines render {cluster.name} -o FOLDER"
        )
    with_bmc = [one for one in wanted if one.settings.bmc]
    seen = look(with_bmc, tuple(every(cluster)), connect)
    return Plan(wanted, left_out, seen, tuple(unasked))


def _names(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def nodes(cluster: Cluster) -> frozenset[str]:
    """Names of the nodes that the cluster has; none where it was never built."""
    try:
        access = access_to(cluster)
    except NotBuiltError:
        return frozenset()
    from kubernetes import client

    found = client.CoreV1Api(access.api()).list_node(_request_timeout=_FETCH_S).items
    return frozenset(str(node.metadata.name) for node in found)


def stale(machines: Sequence[Machine]) -> tuple[list[str], list[str]]:
    """(machines whose served files aren't what the spec says, servers that can't be asked from here)."""
    http = urllib3.PoolManager(maxsize=_FETCHES, timeout=urllib3.Timeout(_FETCH_S), retries=False)
    wrong, unasked = [], []
    for own in by_site(machines).values():
        server = own[0].settings.server
        files = {path: text for path, text in render.tree(own).items() if path.startswith("machines/")}

        def is_served(path: str, server: str = server, files: Mapping[str, str] = files) -> bool:
            response = http.request("GET", f"{server}/{path}")
            served = response.data.decode(errors="replace")
            return response.status == 200 and _without_consent(served) == _without_consent(files[path])

        try:
            with ThreadPoolExecutor(max_workers=_FETCHES) as pool:
                same = dict(zip(files, pool.map(is_served, files), strict=True))
        except urllib3.exceptions.HTTPError:
            unasked.append(server)
            continue
        for machine in own:
            if not all(ok for path, ok in same.items() if path.startswith(f"machines/{machine.hyphened}")):
                wrong.append(machine.name)
    return wrong, unasked


def _without_consent(text: str) -> str:
    """Until when a disk may be overwritten is said when files are written, not by the spec."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("wipe_until="))


def whole(work: Plan, outcome: Outcome) -> Outcome:
    """The outcome with those that were left alone, and those that an earlier run had installed."""
    alone = tuple(
        Result(
            one.machine,
            Stage.FAILED,
            0.0,
            str(one.error or (one.problem and f"{one.problem.code} {one.problem.message}")),
            one.error is not None and one.error.kind is Kind.UNREACHABLE,
        )
        for one in work.unfit
    )
    return replace(outcome, results=(*outcome.results, *alone), left_out=work.left_out)


@dataclass(frozen=True)
class Run:
    """What an installation is given. batch, max_failures: as of `configure`."""

    cluster: str
    connect: Connect
    batch: Amount | None = None
    max_failures: Amount | None = None
    known_hosts: Path = KNOWN_HOSTS
    waits: Waits | None = None


def install(run: Run, machines: Sequence[Machine], watch: Watch) -> Outcome:
    """Install machines, a batch at a time. StackLockedError while another run installs machines of this cluster."""
    with _alone(run.cluster) as journal, ExitStack() as stack:

        def keep(machine: Machine, stage: Stage, why: str) -> None:
            if stage is Stage.DONE and (key := journal.of(machine).key):
                trust_key(run.known_hosts, machine, key)
            watch(machine, stage, why)

        heard = _hear(machines, journal, stack)
        work = Installation(run.connect, heard, journal, watch=keep, waits=run.waits)
        results: list[Result] = []
        why = ""
        names = tuple(one.name for one in machines)
        by_name = {one.name: one for one in machines}
        for batch in batches(names, run.batch):
            ended = work.run([by_name[name] for name in batch])
            results += ended
            broken = sum(one.stage is not Stage.DONE for one in ended)
            failed = sum(one.stage is not Stage.DONE for one in results)
            why = stops(failed, len(machines), run.max_failures, (broken, len(batch)))
            if why:
                break
    not_begun = names[len(results) :]
    return Outcome(tuple(results), not_begun=not_begun, why_stopped=why if not_begun else "")


def _hear(machines: Sequence[Machine], journal: Journal, stack: ExitStack) -> dict[str, Reports]:
    """Site -> what its machines tell, from now on until the stack is closed. Sites may share an address."""
    by_url: dict[str, Reports] = {}
    heard = {}
    for site, own in by_site(machines).items():
        if url := own[0].settings.reports:
            if url not in by_url:
                by_url[url] = Reports(journal.keep_key)
                stack.enter_context(listening(url, by_url[url]))
            heard[site] = by_url[url]
    return heard


def trust_key(path: Path, machine: Machine, key: str) -> None:
    """Write a machine's key where ssh looks for it, in the place of those that it had before."""
    path = path.expanduser().resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        old = read_bytes(path).decode(errors="surrogateescape") if path.exists() else ""
        text = known_hosts.replaced(old, {machine.known_as: key})
        write(path, text, *known_hosts.KIND, mode=0o600)
    finally:
        os.close(folder)


@contextmanager
def _alone(cluster: str) -> Iterator[Journal]:
    """The cluster's journal, for one run at a time."""
    with alone(STATE / cluster, "machines", "installed"):
        yield Journal(_journal(cluster))


def _journal(cluster: str) -> Path:
    return STATE / cluster / "machines.jsonl"
