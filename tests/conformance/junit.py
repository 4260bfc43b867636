"""The reports that e2e.test writes: how each test ended."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_TEST = "[It] "
_WORDS = 4000  # of what a test said at its end: the report has all


class ReportError(Exception):
    """There is no report, or it can't be read: the run did not come to its end."""


@dataclass(frozen=True)
class Result:
    """How one test ended. said: why it failed, "" where it did not; seconds: how long it took."""

    test: str
    state: Literal["passed", "failed", "skipped"]
    seconds: float = 0.0
    said: str = ""


@dataclass(frozen=True)
class Report:
    """results: of tests. beside: what failed that is no test, the suite's own preparation for example."""

    results: tuple[Result, ...]
    beside: tuple[Result, ...]


def read(path: Path) -> Report:
    """The report at `path`. ReportError where it is missing or cut short."""
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError) as error:
        raise ReportError(f"{path} has no report: {error}") from None
    cases = tuple(_cases(root))
    return Report(
        tuple(case for is_test, case in cases if is_test),
        tuple(case for is_test, case in cases if not is_test and case.state == "failed"),
    )


def _cases(root: ET.Element) -> Iterator[tuple[bool, Result]]:
    for case in root.iter("testcase"):
        name = case.get("name", "")
        wrong = next((each for each in (case.find("failure"), case.find("error")) if each is not None), None)
        # The status says `skipped` of what was not chosen, and of a test that found it can't run here.
        state = case.get("status", "")
        seconds = float(case.get("time", 0))
        if wrong is not None:
            said = " ".join(filter(None, (wrong.get("message"), wrong.text or ""))).strip()
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "failed", seconds, said[:_WORDS])
        elif state == "passed":
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "passed", seconds)
        else:
            skipped = case.find("skipped")
            said = skipped.get("message", "") if skipped is not None else state
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "skipped", seconds, said)
