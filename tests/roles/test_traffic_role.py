"""Role traffic with our module under the real ansible-playbook, on overlays of the folders that it writes to."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.roles.overlaid import Host, of_site

CLASSES = {"pod": ["10.200.0.0/16"], "site": ["10.78.0.0/16"]}
GIVEN = {"traffic_classes": CLASSES, "traffic_ceph_ports": ["3300"], "traffic_commands": {"python3": "python3"}}
UNIT = "menagerie-traffic.service"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Host(tmp_path, of_site("traffic"), ("/etc", "/usr/local"))


def test_it_is_placed_and_started_and_a_second_run_changes_nothing(host: Host) -> None:
    ran = host.play(**GIVEN)
    assert (ran.code, ran.changed) == (0, 1), ran.out
    assert ran.systemctl_calls == [f"enable {UNIT}", f"start {UNIT}"]
    settings = json.loads(host.files()["/etc/menagerie/traffic.json"])
    assert (settings["classes"], settings["interfaces"], settings["every_s"]) == (CLASSES, ["cni0"], 10)
    again = host.play(**GIVEN)
    assert (again.code, again.changed, again.systemctl_calls) == (0, 0, []), again.out


def test_a_dry_run_reports_drift_and_repairs_nothing(host: Host) -> None:
    host.play(**GIVEN)
    before = host.files()
    ran = host.play("--check", "--diff", **GIVEN, traffic_every_s=30)
    assert (ran.code, ran.changed, ran.systemctl_calls) == (0, 1, []), ran.out
    assert '"every_s": 30' in ran.out
    assert host.files() == before


def test_other_settings_restart_the_program(host: Host) -> None:
    host.play(**GIVEN)
    assert host.play(**GIVEN, traffic_every_s=30).systemctl_calls == [f"restart {UNIT}"]


def test_the_placed_program_runs(host: Host) -> None:
    """Shows that every file of the package is placed, and that a host without a table has empty totals."""
    assert host.play(**GIVEN).code == 0
    command = host.inside("exec /usr/local/sbin/menagerie-traffic show --json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ['{"counters": [], "resets": 0}']), done


def test_overlapping_classes_are_refused_before_anything_is_counted(host: Host) -> None:
    wrong = {"pod": ["10.200.0.0/16"], "site": ["10.200.7.0/24"]}
    assert host.play(**{**GIVEN, "traffic_classes": wrong}).code == 0
    command = host.inside("/usr/local/sbin/menagerie-traffic run; code=$?; nft list tables; exit $code")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "mounted\n")
    assert "menagerie-traffic: traffic_classes: 10.200.7.0 is in ranges of pod and of site" in done.stderr
