"""Roles gpu and preflight with our module under the real ansible-playbook, on overlays of the folders that they write to."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cluster import hardware
from tests.roles.overlaid import Host, of_site


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Host(tmp_path, of_site("gpu", "preflight"), ("/etc", "/usr/local"))


KIND = hardware.of_kind("dgx-h100", "580").model_dump(mode="json", exclude_none=True)
GPUS = {"gpu_driver_source": "image", "gpu_driver_branch": "580", "preflight_expected": KIND}
TIMER, SERVICE = "menagerie-preflight.timer", "menagerie-gpu.service"


def test_a_worker_that_needs_neither_role_is_left_alone(host: Host) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, ran.systemctl_calls, host.files()) == (0, 0, [], {}), ran.out


def test_both_are_placed_and_started_and_a_second_run_changes_nothing(host: Host) -> None:
    ran = host.play(**GPUS)
    assert (ran.code, ran.changed) == (0, 2), ran.out
    assert ran.systemctl_calls == [f"enable {SERVICE}", f"start {SERVICE}", f"enable {TIMER}", f"start {TIMER}"]
    settings = json.loads(host.files()["/etc/menagerie/preflight.json"])
    assert (settings["node"], settings["expected"]["kind"], settings["expected"]["gpus"]["driver_branch"]) == (
        "localhost",
        "dgx-h100",
        "580",
    )
    again = host.play(**GPUS)
    assert (again.code, again.changed, again.systemctl_calls) == (0, 0, []), again.out


def test_the_placed_check_runs(host: Host) -> None:
    """Shows that every file of the package is placed: without one, the import would fail."""
    ran = host.play(preflight_expected={})
    assert (ran.code, ran.systemctl_calls) == (0, [f"enable {TIMER}", f"start {TIMER}"]), ran.out
    command = host.inside("exec /usr/local/sbin/menagerie-preflight --print")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].split(" (")[0]) == (0, "compared with: any host"), done


def test_a_dry_run_reports_drift_and_repairs_nothing(host: Host) -> None:
    host.play(**GPUS)
    before = host.files()
    ran = host.play("--check", "--diff", **{**GPUS, "gpu_driver_branch": "590"})
    assert (ran.code, ran.changed, ran.systemctl_calls) == (0, 1, []), ran.out
    assert '"branch": "590"' in ran.out
    assert host.files() == before


def test_only_what_changed_is_restarted(host: Host) -> None:
    host.play(**GPUS)
    assert host.play(**GPUS, preflight_every="5min").systemctl_calls == [f"restart {TIMER}"]
    assert host.play(**GPUS, preflight_every="5min", gpu_peermem=True).systemctl_calls == [f"restart {SERVICE}"]


def test_an_unknown_check_is_refused_before_it_reaches_a_host(host: Host) -> None:
    ran = host.play(preflight_expected={}, preflight_only_watched=["gpu"])
    assert ran.code != 0
    assert "value of preflight_only_watched must be one or more of: cpu, memory, disks" in ran.out
    assert host.files() == {}


def test_an_unknown_source_of_drivers_is_refused(host: Host) -> None:
    ran = host.play(**{**GPUS, "gpu_driver_source": "usb"})
    assert ran.code != 0
    assert "value of gpu_driver_source must be one of: image, nvidia, debian" in ran.out
    assert host.files() == {}
