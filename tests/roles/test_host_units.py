from __future__ import annotations

import os
import time

import pytest

RUNNING = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": "no"}
STOPPED = {**RUNNING, "ActiveState": "inactive"}


@pytest.mark.parametrize(
    ("properties", "newer", "restarted", "actions"),
    [
        (RUNNING, [], "always", []),
        (RUNNING, ["/etc/x"], "always", ["restart"]),
        (RUNNING, ["/etc/x"], "if_running", ["restart"]),
        ({**RUNNING, "NeedDaemonReload": "yes"}, [], "always", ["daemon-reload", "restart"]),
        ({**RUNNING, "ActiveState": "activating"}, ["/etc/x"], "if_running", ["restart"]),
        (STOPPED, ["/etc/x"], "always", ["start"]),
        (STOPPED, ["/etc/x"], "if_running", []),
        ({**STOPPED, "ActiveState": "failed"}, [], "always", ["start"]),
        ({**STOPPED, "UnitFileState": "disabled"}, [], "always", ["enable", "start"]),
        ({**STOPPED, "UnitFileState": "static"}, [], "always", ["start"]),
        ({"LoadState": "not-found", "ActiveState": "inactive"}, [], "always", ["daemon-reload", "enable", "start"]),
    ],
)
def test_a_unit_gets_the_verbs_it_needs_and_no_others(host, properties, newer, restarted, actions):
    assert host("units").planned(properties, newer, restarted) == actions


def test_the_start_is_computed_from_the_monotonic_clock(host):
    properties = {"InactiveExitTimestampMonotonic": "40000000"}
    assert host("units").started_at(properties, now=1000.0, monotonic=50.0) == 990.0


def test_inputs_written_after_the_start_are_newer_unless_they_are_in_the_future(host, tmp_path):
    now = time.time()
    for name, age in (("old", 100), ("new", 10), ("future", -1000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now - age, now - age))
    paths = [str(tmp_path / name) for name in ("old", "new", "future", "gone")]
    assert host("units").newer_inputs(paths, start=now - 50, now=now) == [str(tmp_path / "new")]


def test_properties_keep_everything_after_the_first_equals_sign(host):
    assert host("units").parse_properties("A=b=c\n\nD=\n") == {"A": "b=c", "D": ""}


@pytest.mark.parametrize(
    ("state", "written", "outdated"), [("active", 60, True), ("active", -60, False), ("failed", 60, False)]
)
def test_a_running_unit_older_than_its_inputs_is_outdated(host, tmp_path, monkeypatch, state, written, outdated):
    units = host("units")
    (tmp_path / "input").write_text("")
    start = time.time() - 100
    os.utime(tmp_path / "input", (start + written,) * 2)
    since = int((time.monotonic() - 100) * 1e6)
    monkeypatch.setattr(units, "run", lambda *_: f"ActiveState={state}\nInactiveExitTimestampMonotonic={since}\n")
    assert units.outdated("x.service", [str(tmp_path / "input")]) is outdated
