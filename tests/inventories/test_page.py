"""The page of a run: who ran what from which commit, and what became of each host."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from inventories.page import Run, html
from inventories.report import Failure, HostReport, RunReport, TaskTime

GOLDEN = Path(__file__).parents[1] / "golden" / "configure" / "run.html"
BEGAN = datetime(2026, 11, 26, 14, 2, 7, tzinfo=UTC)
RUN = Run(
    cluster="jaguar",
    operator="mia@ops-2",
    toolkit="release 0.2.0, commit 0e9196d4c2b1a8f6b0d5e7c39a1f2d4b6c8e0f13, with uncommitted changes",
    options="--limit 'rack_sjc1_r01:!gpu-7' --tags base,kubelet --parallel 5%",
    began=BEGAN,
)
ENDED = BEGAN + timedelta(seconds=184)
REPORT = RunReport(
    hosts={
        "gpu-1": HostReport(ok=37, changed=2, seconds=31.2),
        "gpu-2": HostReport(ok=37, seconds=29.8),
        "gpu-3": HostReport(ok=12, failed=1, seconds=14.1),
        "gpu-4": HostReport(unreachable=1, seconds=10.0),
    },
    failures=(
        Failure("gpu-3", "containerd", "Places programs, files and units", "no space left on device: /usr/local/bin"),
        Failure("gpu-4", "base", "Reads facts", "Connection timed out", unreachable=True),
    ),
    changes={"gpu-1": ("Places programs, files and units (neighbours)", "Restarts the kubelet")},
    diffs={"gpu-1": "--- before: /etc/sysctl.d/neighbours.conf\n+++ after\n-gc_thresh1 = 80000\n+gc_thresh1 = 0\n"},
    notes={"gpu-2": ("a reboot is needed",)},
    times=(TaskTime("containerd", "Places programs, files and units", 3, 61.5, 24.0, "gpu-1"),),
    left_out=("gpu-6",),
    not_begun=("gpu-5",),
)
EVIL = """<script>alert("1")</script><img src=x onerror='a'>"""


class Page(HTMLParser):
    """A parsed page: its elements, its text, and the definitions of its list by their names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def says(self, name: str) -> str:
        """Return the definition of a name in the page's list."""
        return self.texts[self.texts.index(name) + 1]


def page(report: RunReport = REPORT, run: Run = RUN) -> Page:
    return Page(html(report, run, ENDED))


def test_the_page_of_a_run_matches_its_golden_file() -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the difference."""
    text = html(REPORT, RUN, ENDED)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "run `make golden`, and read the difference"


def test_a_page_says_who_ran_what_from_which_commit_and_for_how_long() -> None:
    shown = page()
    assert shown.says("cluster") == "jaguar"
    assert shown.says("operator") == "mia@ops-2"
    assert shown.says("command") == f"./menagerie configure jaguar {RUN.options}"
    assert shown.says("Menagerie") == RUN.toolkit
    assert shown.says("started") == "2026-11-26 14:02:07 UTC"
    assert shown.says("took") == "3 min"


def test_a_page_of_a_run_without_options_has_the_whole_command() -> None:
    assert page(run=replace(RUN, options="")).says("command") == "./menagerie configure jaguar"


def test_a_page_of_a_dry_run_says_that_nothing_was_changed() -> None:
    shown = page(run=replace(RUN, check=True))
    assert "Workers of jaguar, check only" in shown.texts
    assert "Check mode: nothing was changed." in shown.texts
    assert "would change" in shown.texts


@pytest.mark.parametrize("field", ["cluster", "operator", "toolkit", "options"])
def test_a_hostile_word_about_a_run_is_only_text(field: str) -> None:
    _is_harmless(page(run=replace(RUN, **{field: EVIL})))


@pytest.mark.parametrize(
    "change",
    [
        lambda: replace(REPORT, failures=(Failure("gpu-3", EVIL, EVIL, EVIL),)),
        lambda: replace(REPORT, changes={"gpu-1": (EVIL,)}, diffs={"gpu-1": EVIL}, notes={"gpu-1": (EVIL,)}),
        lambda: replace(REPORT, times=(TaskTime(EVIL, EVIL, 1, 1.0, 1.0, EVIL),)),
        lambda: replace(REPORT, hosts={EVIL: HostReport()}, left_out=(EVIL,)),
    ],
)
def test_a_hostile_word_of_a_host_is_only_text(change: Callable[[], RunReport]) -> None:
    _is_harmless(page(change()))


def _is_harmless(shown: Page) -> None:
    assert {"script", "img", "link", "iframe"}.isdisjoint(tag for tag, _ in shown.elements)
    assert not [name for _, attributes in shown.elements for name in attributes if name.startswith("on")]
    assert EVIL in "".join(shown.texts)


def test_a_page_loads_nothing() -> None:
    assert not re.search(r"https?:|@import|url\(|src=|href=", html(REPORT, RUN, ENDED))


def test_a_page_fits_a_narrow_screen() -> None:
    """There, cells are lines of a list, each with the name of its column."""
    text = html(REPORT, RUN, ENDED)
    assert text.count("<td") == text.count("<td data-column=")
    assert text.count("<table") == text.count('<div class="scroll">\n<table class="rows">') == 4
