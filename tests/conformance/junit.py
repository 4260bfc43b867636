"""The reports of e2e.test: the result of each test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_TEST = "[It] "
_MAX_CHARACTERS = 4000  # length of a failure message in the summary; the report has all of it


class ReportError(Exception):
    """The report is missing or unreadable: the run was not completed."""


@dataclass(frozen=True)
class Result:
    """The result of one test. message: why it failed or was skipped, "" if it passed; seconds: how long it took."""

    test: str
    state: Literal["passed", "failed", "skipped"]
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class Report:
    """The results of a run.

    results: of tests. other_failures: failures outside tests, for example in the suite's own setup.
    """

    results: tuple[Result, ...]
    other_failures: tuple[Result, ...]


def read(path: Path) -> Report:
    """Read the report at `path`. Raises ReportError if it is missing or truncated."""
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
        failure = next((child for child in (case.find("failure"), case.find("error")) if child is not None), None)
        # The status is `skipped` for tests that were not selected, and for tests that found they cannot run here.
        state = case.get("status", "")
        seconds = float(case.get("time", 0))
        if failure is not None:
            message = " ".join(filter(None, (failure.get("message"), failure.text or ""))).strip()
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "failed", seconds, message[:_MAX_CHARACTERS])
        elif state == "passed":
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "passed", seconds)
        else:
            skipped = case.find("skipped")
            message = skipped.get("message", "") if skipped is not None else state
            yield name.startswith(_TEST), Result(name.removeprefix(_TEST), "skipped", seconds, message)
