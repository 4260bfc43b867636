"""Progress output: one line at a time on a terminal, few lines elsewhere, no colour in a file."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console
from rich.table import Table

from cli import output
from cli.output import Details, Steps
from cli.views.status import print_status
from operations.status import Status, StatusItem

NAMES = ("cloud side", "API server", "workers")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_without_a_terminal_each_step_is_a_line_with_its_time_and_the_steps_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = Steps(NAMES)
    for name in NAMES:
        with steps.step(name):
            for number in range(100):
                steps.detail(f"task {number}")
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r" 1/3 +0\.\d s ✓ cloud side +left: API server, workers", lines[0])
    assert re.fullmatch(r" 3/3 +0\.\d s ✓ workers", lines[2])
    assert list(steps.seconds) == list(NAMES)


def test_a_failed_step_is_shown_with_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps(NAMES)
    with steps.step("cloud side"):
        pass
    with pytest.raises(ValueError, match="no"), steps.step("API server"):
        raise ValueError("no")
    assert re.fullmatch(r" 2/3 +0\.\d s ✗ API server", capsys.readouterr().err.splitlines()[1])


def test_without_a_terminal_only_the_newest_detail_is_printed_at_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    every_s, began = 0.2, time.monotonic()
    details = Details("workers: ", every_s=every_s)
    with details.lines():
        for number in range(50):
            details.tell(f"task {number}")
            time.sleep(0.01)
        details.tell("the last")
        time.sleep(0.7)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= (time.monotonic() - began) / every_s + 1
    assert lines[-1].endswith("s   workers: the last")
    assert len(set(lines)) == len(lines)


def test_a_single_detail_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    details = Details(every_s=0.05)
    with details.lines():
        details.tell("building kubernetes")
        time.sleep(0.3)
    assert [line[-19:] for line in capsys.readouterr().err.splitlines()] == ["building kubernetes"]


def test_quiet_steps_print_nothing_but_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps(NAMES, quiet=True)
    with steps.step("cloud side"):
        steps.detail("something")
    assert capsys.readouterr() == ("", "")
    assert "cloud side" in steps.seconds


@pytest.mark.parametrize("width", [40, 80, 200])
def test_on_a_terminal_the_running_step_is_one_line(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(output, "errors", Console(file=screen, force_terminal=True, width=width, soft_wrap=True))
    steps = Steps(NAMES)
    with steps.step("cloud side"):
        steps.detail(f"creating host [api-1] {'x' * 300}")
        time.sleep(0.6)
    drawn = [_ESCAPES.sub("", part) for part in re.split(r"[\r\n]", screen.getvalue())]
    running = [line for line in drawn if "cloud side" in line and "✓" not in line]
    assert running
    assert all(len(line) < width for line in running)
    assert any("creating host [" in line for line in running) or width == 40
    assert any("left" in line for line in running)
    # A single line is redrawn from its start; two lines would need the cursor to move up.
    assert screen.getvalue().count("\x1b[1A") <= 1


def _status() -> Status:
    long = "etcd ok, etcd-readiness ok, and some more that makes this line far longer than eighty columns are"
    return Status(
        "lab",
        "https://10.77.0.10:6443",
        (StatusItem("etcds", "etcd main", True, long), StatusItem("etcds", "x", False, "[gone]")),
    )


def test_a_status_is_not_wrapped_and_has_no_colour_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(_status())
    out = capsys.readouterr().out
    assert out.splitlines() == [
        f"etcds  etcd main  ok      {_status().items[0].detail}",
        "       x          not ok  [gone]",
        "endpoint  https://10.77.0.10:6443; 1 of 2 not ok",
    ]


def test_a_table_has_whole_cells_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(box=None, show_header=False)
    table.add_row(*(f"a cell with {number} {'and more ' * 4}" for number in range(5)))
    output.console.print(table)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.count("and more and more and more and more") == 5


def test_a_status_has_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("cli.views.status.console", Console(file=screen, force_terminal=True, width=80, soft_wrap=True))
    print_status(_status())
    assert "\x1b[3" in screen.getvalue()
