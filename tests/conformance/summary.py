"""Summarise a run: every planned test has passed, failed, skipped itself or never run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.conformance.junit import Report, Result
from tests.conformance.plan import Plan


@dataclass(frozen=True)
class Summary:
    """The result of a run. skipped: tests that found they cannot run here. missing: planned, but in no report."""

    passed: tuple[Result, ...]
    failed: tuple[Result, ...]
    skipped: tuple[Result, ...]
    missing: tuple[str, ...]
    other_failures: tuple[Result, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def good(self) -> bool:
        """Whether every planned test has passed. A run without planned tests proves nothing."""
        return bool(self.passed) and not (self.failed or self.skipped or self.missing or self.other_failures)


def summary(planned: Plan, parts: Iterable[tuple[Sequence[str], Report]]) -> Summary:
    """Return the summary of a plan and its parts.

    parts: for each part its tests and its report, which lists all other tests as skipped.
    """
    all_parts = tuple(parts)
    results = {
        result.test: result for tests, report in all_parts for result in report.results if result.test in set(tests)
    }

    def ended(state: str) -> tuple[Result, ...]:
        return tuple(results[test] for test in planned.all if test in results and results[test].state == state)

    return Summary(
        ended("passed"),
        ended("failed"),
        ended("skipped"),
        tuple(test for test in planned.all if test not in results),
        tuple(result for _, report in all_parts for result in report.other_failures),
        planned.left_out,
    )


def text(outcome: Summary) -> str:
    """Return a readable summary: problems by name, the longest tests, and the totals at the end."""
    lines: list[str] = []
    for title, results in (
        ("failed", outcome.failed),
        ("skipped itself", outcome.skipped),
        ("failed outside tests", outcome.other_failures),
    ):
        lines += [f"{title}: {result.test}\n{_indented(result.message)}".rstrip() for result in results]
    lines += [f"never ran: {test}" for test in outcome.missing]
    lines += [f"left out: {test}\n    {reason}" for test, reason in outcome.left_out]
    longest = sorted(outcome.passed, key=lambda result: -result.seconds)[:5]
    lines += [f"took {result.seconds:.0f} s: {result.test}" for result in longest]
    totals = (
        (len(outcome.passed), "passed"),
        (len(outcome.failed), "failed"),
        (len(outcome.skipped), "skipped themselves"),
        (len(outcome.missing), "never ran"),
        (len(outcome.left_out), "left out"),
    )
    return "\n".join([*lines, ", ".join(f"{number} {state}" for number, state in totals)])


def _indented(message: str) -> str:
    return "\n".join(f"    {line}" for line in message.splitlines()[:12])
