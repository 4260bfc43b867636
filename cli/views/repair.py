"""The questions and output of `repair`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.text import Text

from cli import exits
from cli.asking import confirm, evictions
from cli.output import Details, console, errors, print_json
from cluster.spec import Cluster
from operations.repair.look import Case, RepairPlan, RepairStep
from operations.repair.records import RepairRecord
from operations.repair.run import RepairEnd, RepairResult
from operations.rolling import Rolled, RollState

_SHOWN = 20
_COLOURS = {RepairEnd.MENDED: "green", RepairEnd.POSTPONED: "yellow", RepairEnd.FAILED: "red", RepairEnd.TICKET: "red"}
_MARKS = {RepairEnd.MENDED: "✓", RepairEnd.POSTPONED: "…", RepairEnd.FAILED: "✗", RepairEnd.TICKET: "✗"}


class View:
    """Print one round. rolled, results: the repairs so far."""

    def __init__(self, cluster: Cluster, brakes: tuple[str | None, str | None], *, quiet: bool) -> None:
        self._cluster = cluster
        self._brakes = brakes
        self._quiet = quiet
        self.rolled = Rolled(())
        self.results: dict[str, RepairResult] = {}

    def add(self, rolled: Rolled, results: Mapping[str, RepairResult]) -> None:
        """Add the results of more repairs."""
        before = self.rolled
        why = "; ".join(filter(None, (before.why_stopped, rolled.why_stopped)))
        self.rolled = Rolled((*before.outcomes, *rolled.outcomes), why, rolled.interrupted)
        self.results |= results

    def show(self, plan: RepairPlan) -> None:
        """Print what is broken, what would be done and lost, and what prevents repairs."""
        for option, share in zip(("--max-unhealthy", "--max-removal"), self._brakes, strict=True):
            if share:
                errors.print(Text(f"{option} {share} overrides the spec's limit for this run", style="yellow"))
        if self._quiet:
            return
        for case in plan.cases[:_SHOWN]:
            errors.print(_line(case), markup=False)
        if len(plan.cases) > _SHOWN:
            errors.print(f"and {len(plan.cases) - _SHOWN} more", markup=False)
        for brake in plan.decision.brakes:
            if any(case.host in brake.hosts for case in plan.cases):
                errors.print(Text(brake.text, style="yellow"))
        for host, why in plan.tickets.items():
            errors.print(Text(f"{host}: ticket: {why}", style="yellow"))
        for host, why in plan.left_out.items():
            errors.print(Text(f"{host}: skipped: {why}", style="yellow"))

    def confirm(self, plan: RepairPlan) -> None:
        name = self._cluster.name
        cost = evictions(sum(case.pods for case in plan.allowed), sum(case.scratch for case in plan.allowed))
        if overwritten := [case.host for case in plan.allowed if case.step is RepairStep.REINSTALL]:
            cost += f"; the system disks of {', '.join(overwritten)} are overwritten"
        question, again = f"Repair {len(plan.allowed)} hosts? {cost}.", f"repair {name}"
        confirm(question, again, see=("what is broken", f"{again} --dry-run"))

    @contextmanager
    def details(self) -> Iterator[Callable[[str], None]]:
        """Print progress while the block runs."""
        if self._quiet:
            yield lambda _: None
            return
        details = Details()
        with details.lines():
            yield details.tell

    def tell(self, result: RepairResult) -> None:
        if not self._quiet:
            line = f"{_MARKS[result.end]} {result.host}  {result.end}: {result.text}".rstrip(": ")
            errors.print(Text(line, style=_COLOURS[result.end]))

    def conclude(self, plan: RepairPlan, *, dry_run: bool) -> int:
        """Print the result and return the exit code."""
        if self.rolled.interrupted:
            raise KeyboardInterrupt
        failed = [outcome for outcome in self.rolled.outcomes if outcome.state is RollState.FAILED]
        repaired = [result.host for result in self.results.values() if result.end is RepairEnd.MENDED]
        left = [case.host for case in plan.cases if case.host not in repaired]
        unrepaired = len(left) + len(plan.tickets) + len(plan.left_out)
        if self._quiet:
            print_json(self._document(plan))
        else:
            for outcome in failed:
                errors.print(Text(f"✗ {outcome.host}  {outcome.text}", style="red"))
            if self.rolled.why_stopped:
                errors.print(Text(self.rolled.why_stopped, style="yellow"))
            console.print(
                f"{self._cluster.name}: {_sum(plan, len(repaired), unrepaired, dry_run=dry_run)}", markup=False
            )
        return exits.FAILED if unrepaired or failed else exits.DONE

    def _document(self, plan: RepairPlan) -> dict[str, object]:
        results = {host: result.to_json() for host, result in self.results.items()}
        hosts = [
            {**case.to_json(), "allowed": case.host in plan.decision.allowed, **results.get(case.host, {})}
            for case in plan.cases
        ]
        return {
            "cluster": self._cluster.name,
            "hosts": hosts,
            "brakes": [
                {"kind": brake.kind, "text": brake.text, "hosts": sorted(brake.hosts)} for brake in plan.decision.brakes
            ],
            "tickets": plan.tickets,
            "left_out": plan.left_out,
            "why_stopped": self.rolled.why_stopped,
        }


def _line(case: Case) -> str:
    begun = f"started {case.mark.since}; " if case.mark else ""
    attempts = f", after {case.record.attempts} repairs" if case.record.attempts else ""
    pods = f", {case.pods} pods" if case.pods else ""
    lost = f"; no controller would recreate {', '.join(case.unmanaged[:3])}" if case.unmanaged else ""
    return f"{case.host} ({case.pool or 'no pool'}): {begun}{case.step}{attempts}{pods}: {case.why}{lost}"


def _sum(plan: RepairPlan, repaired: int, unrepaired: int, *, dry_run: bool) -> str:
    nodes = len(plan.snapshot.fleet.members)
    if not plan.cases and not unrepaired:
        return f"nothing to repair; checked {nodes} nodes"
    if dry_run:
        return f"{len(plan.cases)} of {nodes} nodes to repair, {len(plan.allowed)} may start; nothing was changed"
    return f"{repaired} repaired, {unrepaired} left; checked {nodes} nodes"


def forgotten(host: str, record: RepairRecord, *, quiet: bool) -> None:
    """Print what --retry cleared for a host."""
    if not quiet:
        cleared = f"{record.attempts} repairs" + (f", and its ticket: {record.ticket}" if record.ticket else "")
        errors.print(f"{host}: cleared: {cleared}", markup=False)
