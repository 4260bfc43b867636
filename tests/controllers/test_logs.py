"""The logs of services: their form, their levels, and that nothing else writes next to them."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path

import pytest

from clients import logs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def set_up() -> None:
    logs.set_up()


def test_an_event_has_its_time_in_utc_its_level_its_module_and_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.makeLogRecord(
        {"name": "clients.lease", "levelname": "INFO", "levelno": logging.INFO, "created": 1_700_000_000.0, "msg": "%s"}
    )
    record.args = ("acquired",)
    logging.getLogger("clients.lease").handle(record)
    assert capsys.readouterr() == ("", "2023-11-14T22:13:20Z INFO clients.lease: acquired\n")


def test_a_second_set_up_does_not_repeat_events(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up()
    logging.getLogger("clients.lease").warning("once")
    assert capsys.readouterr().err.count("once") == 1


def test_text_from_outside_cannot_look_like_an_event_or_control_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("controllers.program").error("refused: %s", "x\n2026-11-01T00:00:00Z INFO forged\r\x1b[2J")
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("ERROR controllers.program: refused: x")
    assert second == r"  2026-11-01T00:00:00Z INFO forged\r\x1b[2J"


def test_a_defect_has_its_traceback_below_the_event(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError:
        logging.getLogger("controllers.program").exception("exiting")
    event, *traceback = capsys.readouterr().err.splitlines()
    assert event.endswith("ERROR controllers.program: exiting")
    assert traceback[0] == "  Traceback (most recent call last):"
    assert traceback[-1] == "  ZeroDivisionError: by zero"


@pytest.mark.parametrize("library", ["urllib3.connectionpool", "kubernetes.client", "botocore", "azure.core", "grpc"])
def test_libraries_log_only_warnings(library: str) -> None:
    assert not logging.getLogger(library).isEnabledFor(logging.INFO)


def test_each_of_our_packages_that_logs_is_set_up() -> None:
    tops = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in ("tests", "roles", ".venv")]
    log = re.compile(r"^log = logging\.getLogger\(", re.MULTILINE)
    packages = {
        top.name
        for top in tops
        for path in top.rglob("*.py")
        if log.search(path.read_text()) and logging.getLogger(top.name).level != logging.INFO
    }
    assert packages == set()


def test_controllers_log_and_never_print() -> None:
    prints = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "controllers").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert prints == []
