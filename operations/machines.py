"""Installation of bare machines for an operator's verbs: checks of existing nodes and served files, and batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import urllib3

from clients.access import API_TIMEOUT_S, Access
from clients.kube import Kube
from cluster.errors import FailedError, RefusedError, UnreachableError
from cluster.locks import locked
from cluster.reading import read_bytes
from cluster.spec import Cluster
from cluster.writing import write
from inventories.batches import Amount, batches, stops
from operations.bmcs import BmcReading, by_site, read_all
from operations.machines_journal import journal_of, locked_journal
from operations.provisioning import known_hosts, render
from operations.provisioning.connecting import Connect
from operations.provisioning.install import Installation, InstallResult, Waits, Watch
from operations.provisioning.journal import InstallJournal, InstallStage
from operations.provisioning.machines import SiteMachine, every
from operations.provisioning.redfish import BmcErrorKind
from operations.provisioning.reports import Reports, listening
from operations.record.store import RecordStore

KNOWN_HOSTS = Path("~/.ssh/known_hosts")
"""Where ssh and Ansible look up the keys of hosts that no provider manages."""
_FETCH_S = 10
_FETCHES = 8
"""Parallel requests to a server."""
_SHOWN = 8


class MachinesError(RefusedError):
    """Machines must not be installed. Nothing was changed. The text says why."""

    code = "machines-refused"


def not_installed(outcome: InstallOutcome) -> FailedError | UnreachableError:
    """Return the error for machines that were not installed."""
    broken = [result for result in outcome.results if result.stage is not InstallStage.DONE]
    done = len(outcome.results) - len(broken)
    lines = [f"{done} of {len(outcome.results)} machines done"]
    lines += [f"{result.machine.name} ({result.machine.rack}): {result.why}" for result in broken]
    if outcome.not_begun:
        lines.append(f"{outcome.why_stopped}; not started: {', '.join(outcome.not_begun)}")
    text = "\n  ".join(lines) + "\nFix these machines and run the same command again; it resumes here."
    if broken and all(result.unreachable for result in broken):
        return UnreachableError(text, code="machines-unreachable")
    return FailedError(text, code="machines-failed")


@dataclass(frozen=True)
class InstallOutcome:
    """The result of a run over machines."""

    results: tuple[InstallResult, ...]
    left_out: tuple[str, ...] = ()
    not_begun: tuple[str, ...] = ()
    why_stopped: str = ""

    @property
    def succeeded(self) -> bool:
        return not self.not_begun and all(result.stage is InstallStage.DONE for result in self.results)

    def to_json(self) -> dict[str, Any]:
        """Return it for --json."""
        machines = [
            {
                "name": result.machine.name,
                "site": result.machine.site,
                "rack": result.machine.rack,
                "stage": str(result.stage),
                "seconds": round(result.seconds, 1),
                "why": result.why,
            }
            for result in self.results
        ]
        return {"machines": machines, "left_out": list(self.left_out), "not_begun": list(self.not_begun)}


@dataclass(frozen=True)
class InstallPlan:
    """The plan of an installation. readings: current reports of machines with a BMC. left_out: installed by an earlier run.

    unasked: servers whose files could not be compared from here.
    """

    machines: tuple[SiteMachine, ...]
    left_out: tuple[str, ...]
    readings: tuple[BmcReading, ...]
    unasked: tuple[str, ...]

    @property
    def unfit(self) -> tuple[BmcReading, ...]:
        return tuple(result for result in self.readings if not result.is_healthy)

    @property
    def to_install(self) -> tuple[SiteMachine, ...]:
        unfit = {result.machine.name for result in self.unfit}
        return tuple(machine for machine in self.machines if machine.name not in unfit)


def plan(
    cluster: Cluster,
    access: Access | None,
    machines: Sequence[SiteMachine],
    connect: Connect,
    *,
    store: RecordStore | None,
    again: bool,
) -> InstallPlan:
    """Decide which machines may be installed. access: None before the first `up`. store: see `machines_journal.shared`. Changes nothing.

    Errors: raises MachinesError if the run must not start, RecordStoreError if the cluster's bucket does not answer.
    """
    journal = journal_of(cluster.name, store)
    stages = {machine.name: journal.of(machine).stage for machine in machines}
    chosen = tuple(machine for machine in machines if again or stages[machine.name] is not InstallStage.DONE)
    left_out = tuple(machine.name for machine in machines if machine not in chosen)
    for site, at_site in by_site(chosen).items():
        if not (at_site[0].settings.bmc or at_site[0].settings.reports):
            raise MachinesError(
                f"can't tell when machines at {site} are installed: its provisioning has neither bmc nor reports; set one of them"
            )
    if not again and (joined := nodes(access) & {machine.name for machine in chosen}):
        raise MachinesError(
            f"already nodes of {cluster.name}: {_names(joined)}; to reinstall, drain and delete them, then run with --again"
        )
    outdated, unasked = stale(chosen)
    if outdated:
        raise MachinesError(
            f"the files served for {_names(outdated)} differ from the spec; render them again and copy them to the server: "
            f"./menagerie machines render {cluster.name} -o FOLDER"
        )
    with_bmc = [machine for machine in chosen if machine.settings.bmc]
    readings = read_all(with_bmc, tuple(every(cluster)), connect)
    return InstallPlan(chosen, left_out, readings, tuple(unasked))


def _names(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def nodes(access: Access | None) -> frozenset[str]:
    """Return the names of the cluster's nodes; none if it was never built."""
    if access is None:
        return frozenset()
    return frozenset(node["metadata"]["name"] for node in Kube(access.api(), timeout_s=API_TIMEOUT_S).list("Node"))


def stale(machines: Sequence[SiteMachine]) -> tuple[list[str], list[str]]:
    """Return (machines whose served files differ from the spec, servers that can't be reached from here)."""
    http = urllib3.PoolManager(maxsize=_FETCHES, timeout=urllib3.Timeout(_FETCH_S), retries=False)
    outdated, unasked = [], []
    for at_site in by_site(machines).values():
        server = at_site[0].settings.server
        files = {path: text for path, text in render.tree(at_site).items() if path.startswith("machines/")}

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
        for machine in at_site:
            if not all(ok for path, ok in same.items() if path.startswith(f"machines/{machine.hyphened}")):
                outdated.append(machine.name)
    return outdated, unasked


def _without_consent(text: str) -> str:
    """Remove the deadline for overwriting a disk: it is set when files are written and not in the spec."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("wipe_until="))


def whole(work: InstallPlan, outcome: InstallOutcome) -> InstallOutcome:
    """Return the outcome with the machines that were skipped and those that an earlier run installed."""
    skipped = tuple(
        InstallResult(
            result.machine,
            InstallStage.FAILED,
            0.0,
            str(result.error or (result.problem and f"{result.problem.code} {result.problem.message}")),
            result.error is not None and result.error.kind is BmcErrorKind.UNREACHABLE,
        )
        for result in work.unfit
    )
    return replace(outcome, results=(*outcome.results, *skipped), left_out=work.left_out)


@dataclass(frozen=True)
class InstallSettings:
    """Settings of an installation. batch, max_failures: as for `configure`. shared: where other checkouts see its journal."""

    cluster: str
    connect: Connect
    shared: RecordStore | None = None
    batch: Amount | None = None
    max_failures: Amount | None = None
    known_hosts: Path = KNOWN_HOSTS
    waits: Waits | None = None


def install(run: InstallSettings, machines: Sequence[SiteMachine], watch: Watch) -> InstallOutcome:
    """Install machines, batch by batch. Raises StackLockedError while another run installs machines of this cluster."""
    with locked_journal(run.cluster, run.shared) as journal, ExitStack() as stack:

        def keep(machine: SiteMachine, stage: InstallStage, why: str) -> None:
            if stage is InstallStage.DONE and (key := journal.of(machine).key):
                trust_key(run.known_hosts, machine, key)
            watch(machine, stage, why)

        reports = _hear(machines, journal, stack)
        work = Installation(run.connect, reports, journal, watch=keep, waits=run.waits)
        results: list[InstallResult] = []
        why = ""
        names = tuple(machine.name for machine in machines)
        by_name = {machine.name: machine for machine in machines}
        for batch in batches(names, run.batch):
            ended = work.run([by_name[name] for name in batch])
            results += ended
            broken = sum(result.stage is not InstallStage.DONE for result in ended)
            failed = sum(result.stage is not InstallStage.DONE for result in results)
            why = stops(failed, len(machines), run.max_failures, (broken, len(batch)))
            if why:
                break
    not_begun = names[len(results) :]
    return InstallOutcome(tuple(results), not_begun=not_begun, why_stopped=why if not_begun else "")


def _hear(machines: Sequence[SiteMachine], journal: InstallJournal, stack: ExitStack) -> dict[str, Reports]:
    """Listen until `stack` closes. Return site -> reports of its machines. Sites may share an address."""
    by_url: dict[str, Reports] = {}
    by_site_ = {}
    for site, at_site in by_site(machines).items():
        if url := at_site[0].settings.reports:
            if url not in by_url:
                by_url[url] = Reports(journal.keep_key)
                stack.enter_context(listening(url, by_url[url]))
            by_site_[site] = by_url[url]
    return by_site_


def trust_key(path: Path, machine: SiteMachine, key: str) -> None:
    """Write a machine's host key where ssh looks for it, and replace its older keys."""
    path = path.expanduser().resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent):
        old = read_bytes(path).decode(errors="surrogateescape") if path.exists() else ""
        text = known_hosts.replaced(old, {machine.known_as: key})
        write(path, text, *known_hosts.KIND, mode=0o600)
