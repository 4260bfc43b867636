"""What `repair` shows, asks and prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.text import Text

from cli import exits
from cli.asking import confirm, evictions
from cli.output import Details, console, errors, print_json
from cluster.spec import Cluster
from operations.repair.look import Case, Plan, Step
from operations.repair.records import Record
from operations.repair.run import End, Result
from operations.rolling import Rolled, State

_SHOWN = 20
_COLOURS = {End.MENDED: "green", End.POSTPONED: "yellow", End.FAILED: "red", End.TICKET: "red"}
_MARKS = {End.MENDED: "✓", End.POSTPONED: "…", End.FAILED: "✗", End.TICKET: "✗"}


class View:
    """One round. rolled, results: what was mended so far."""

    def __init__(self, cluster: Cluster, brakes: tuple[str | None, str | None], *, quiet: bool) -> None:
        self._cluster = cluster
        self._brakes = brakes
        self._quiet = quiet
        self.rolled = Rolled(())
        self.results: dict[str, Result] = {}

    def add(self, rolled: Rolled, results: Mapping[str, Result]) -> None:
        """Some more was mended."""
        before = self.rolled
        why = "; ".join(filter(None, (before.why_stopped, rolled.why_stopped)))
        self.rolled = Rolled((*before.outcomes, *rolled.outcomes), why, rolled.interrupted)
        self.results |= results

    def show(self, plan: Plan) -> None:
        """What is broken, what would be done and lost, and what stands against it."""
        for option, share in zip(("--max-unhealthy", "--max-removal"), self._brakes, strict=True):
            if share:
                errors.print(
                    Text(f"{option} {share} stands in place of the spec's limit, for this run", style="yellow")
                )
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
            errors.print(Text(f"{host}: left out: {why}", style="yellow"))

    def confirm(self, plan: Plan) -> None:
        name = self._cluster.name
        told = evictions(sum(case.pods for case in plan.allowed), sum(case.scratch for case in plan.allowed))
        if anew := [case.host for case in plan.allowed if case.step is Step.REINSTALL]:
            told += f"; the system disks of {', '.join(anew)} are overwritten"
        question, again = f"Repair {len(plan.allowed)} hosts? {told}.", f"repair {name}"
        confirm(question, again, see=("what is broken", f"{again} --dry-run"))

    @contextmanager
    def details(self) -> Iterator[Callable[[str], None]]:
        """Print what goes on, for the length of a block."""
        if self._quiet:
            yield lambda _: None
            return
        details = Details()
        with details.lines():
            yield details.tell

    def tell(self, result: Result) -> None:
        if not self._quiet:
            line = f"{_MARKS[result.end]} {result.host}  {result.end}: {result.text}".rstrip(": ")
            errors.print(Text(line, style=_COLOURS[result.end]))

    def conclude(self, plan: Plan, *, dry_run: bool) -> int:
        """Print the result; the exit code."""
        if self.rolled.interrupted:
            raise KeyboardInterrupt
        failed = [each for each in self.rolled.outcomes if each.state is State.FAILED]
        mended = [each.host for each in self.results.values() if each.end is End.MENDED]
        left = [case.host for case in plan.cases if case.host not in mended]
        unmended = len(left) + len(plan.tickets) + len(plan.left_out)
        if self._quiet:
            print_json(self._document(plan))
        else:
            for outcome in failed:
                errors.print(Text(f"✗ {outcome.host}  {outcome.text}", style="red"))
            if self.rolled.why_stopped:
                errors.print(Text(self.rolled.why_stopped, style="yellow"))
            console.print(f"{self._cluster.name}: {_sum(plan, len(mended), unmended, dry_run=dry_run)}", markup=False)
        return exits.FAILED if unmended or failed else exits.DONE

    def _document(self, plan: Plan) -> dict[str, object]:
        ended = {host: result.to_json() for host, result in self.results.items()}
        hosts = [
            {**case.to_json(), "allowed": case.host in plan.decision.allowed, **ended.get(case.host, {})}
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
    begun = f"begun {case.mark.since}; " if case.mark else ""
    tried = f", after {case.record.attempts} repairs" if case.record.attempts else ""
    pods = f", {case.pods} pods" if case.pods else ""
    lost = f"; nothing would make {', '.join(case.unmanaged[:3])} anew" if case.unmanaged else ""
    return f"{case.host} ({case.pool or 'no pool'}): {begun}{case.step}{tried}{pods}: {case.why}{lost}"


def _sum(plan: Plan, mended: int, unmended: int, *, dry_run: bool) -> str:
    nodes = len(plan.seen.fleet.members)
    if not plan.cases and not unmended:
        return f"nothing to repair, {nodes} nodes looked at"
    if dry_run:
        return f"{len(plan.cases)} of {nodes} nodes to repair, {len(plan.allowed)} may start; none was touched"
    return f"{mended} mended, {unmended} left; {nodes} nodes looked at"


def forgotten(host: str, record: Record, *, quiet: bool) -> None:
    """What was forgotten of a host."""
    if not quiet:
        had = f"{record.attempts} repairs" + (f", and its ticket: {record.ticket}" if record.ticket else "")
        errors.print(f"{host}: forgotten: {had}", markup=False)
