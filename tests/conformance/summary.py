"""What a run came to: every test that was planned is passed, failed, skipped or never ran. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.conformance.junit import Report, Result
from tests.conformance.plan import Plan


@dataclass(frozen=True)
class Summary:
    """skipped: by the test itself, which found that it can't run here. missing: planned, and in no report."""

    passed: tuple[Result, ...]
    failed: tuple[Result, ...]
    skipped: tuple[Result, ...]
    missing: tuple[str, ...]
    beside: tuple[Result, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def good(self) -> bool:
        """Whether every test that was planned has passed. Where none was planned, nothing is proved."""
        return bool(self.passed) and not (self.failed or self.skipped or self.missing or self.beside)


def summary(planned: Plan, parts: Iterable[tuple[Sequence[str], Report]]) -> Summary:
    """Of a plan and its parts: the tests that each was to run, and its report, which names all others as skipped."""
    every = tuple(parts)
    found = {result.test: result for tests, report in every for result in report.results if result.test in set(tests)}

    def ended(state: str) -> tuple[Result, ...]:
        return tuple(found[test] for test in planned.all if test in found and found[test].state == state)

    return Summary(
        ended("passed"),
        ended("failed"),
        ended("skipped"),
        tuple(test for test in planned.all if test not in found),
        tuple(result for _, report in every for result in report.beside),
        planned.left_out,
    )


def text(told: Summary) -> str:
    """For people: what is wrong by name, the longest tests, and the numbers at the end."""
    lines: list[str] = []
    for title, results in (
        ("failed", told.failed),
        ("skipped by themselves", told.skipped),
        ("wrong beside tests", told.beside),
    ):
        lines += [f"{title}: {result.test}\n{_indented(result.said)}".rstrip() for result in results]
    lines += [f"never ran: {test}" for test in told.missing]
    lines += [f"left out: {test}\n    {reason}" for test, reason in told.left_out]
    longest = sorted(told.passed, key=lambda result: -result.seconds)[:5]
    lines += [f"took {result.seconds:.0f} s: {result.test}" for result in longest]
    numbers = (
        (len(told.passed), "passed"),
        (len(told.failed), "failed"),
        (len(told.skipped), "skipped by themselves"),
        (len(told.missing), "never ran"),
        (len(told.left_out), "left out"),
    )
    return "\n".join([*lines, ", ".join(f"{number} {what}" for number, what in numbers)])


def _indented(said: str) -> str:
    return "\n".join(f"    {line}" for line in said.splitlines()[:12])
