"""Role node_metrics with our module under the real ansible-playbook, on overlays of the folders that it writes to."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from cluster.metrics.nodes import COLLECTORS
from tests.roles.overlaid import Host, of_site

ARCHIVE = "node_exporter-1.12.1.linux-amd64"
EXPORTER, TIMERS = "node-exporter.service", ["menagerie-node-metrics@host.timer", "menagerie-node-metrics@gpus.timer"]
STARTED = ["node-exporter.path", *TIMERS]
UNIT = "/etc/systemd/system/node-exporter.service"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Make an archive in upstream's layout; return the role's variables."""
    content = b"#!/bin/sh\nexit 0\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(f"{ARCHIVE}/node_exporter")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    path = tmp_path / f"{ARCHIVE}.tar.gz"
    path.write_bytes(packed.getvalue())
    download = {"url": f"file://{path}", "sha256": hashlib.sha256(packed.getvalue()).hexdigest()}
    return {
        "node_metrics_downloads": {"node_exporter": download},
        "node_metrics_client": "metrics.menagerie.internal",
        "node_metrics_port": 9100,
        "node_metrics_collectors": list(COLLECTORS),
        "node_metrics_agent_port": 8134,
    }


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Host(tmp_path, of_site("node_metrics"), ("/etc", "/usr/local"))


def test_a_dry_run_writes_nothing_a_run_all_of_it_and_a_second_run_changes_nothing(
    host: Host, given: dict[str, Any]
) -> None:
    dry = host.play("--check", **given)
    assert (dry.code, dry.changed, dry.systemctl_calls, host.files()) == (0, 1, [], {}), dry.out
    ran = host.play(**given)
    assert (ran.code, ran.changed) == (0, 1), ran.out
    # The exporter itself is started by its path unit, when there is a certificate.
    others = [call for call in ran.systemctl_calls if EXPORTER not in call]
    assert others == [call for unit in STARTED for call in (f"enable {unit}", f"start {unit}")]
    assert f"start {EXPORTER}" not in ran.systemctl_calls
    files = host.files()
    assert files["/usr/local/bin/node_exporter"] == "#!/bin/sh\nexit 0\n"
    assert 'client_allowed_sans: ["metrics.menagerie.internal"]\n' in files["/etc/menagerie/node-exporter.yml"]
    again = host.play(**given)
    assert (again.code, again.changed, again.systemctl_calls) == (0, 0, []), again.out


def test_drift_is_reported_by_a_dry_run_and_repaired_by_a_run(host: Host, given: dict[str, Any]) -> None:
    host.play(**given)
    placed = host.layer("upper", "/etc") / "systemd" / "system" / EXPORTER
    text = placed.read_text()
    placed.write_text(text.replace("DynamicUser=yes", "User=root"))
    dry = host.play("--check", "--diff", **given)
    assert (dry.code, dry.changed, "-User=root" in dry.out) == (0, 1, True), dry.out
    assert "User=root" in placed.read_text()
    assert host.play(**given).changed == 1
    assert host.files()[UNIT] == text


def test_the_placed_program_runs(host: Host, given: dict[str, Any]) -> None:
    """Shows that every file of the package is placed: without one, the import would fail."""
    assert host.play(**given).code == 0
    done = subprocess.run(
        host.inside("exec /usr/local/sbin/menagerie-node-metrics host"), capture_output=True, text=True, check=False
    )
    assert (done.returncode, "menagerie_reboot_required 0" in done.stdout.splitlines()) == (0, True), done


def test_a_changed_interval_restarts_the_timers_only(host: Host, given: dict[str, Any]) -> None:
    host.play(**given)
    ran = host.play(**given, node_metrics_every="2min")
    assert ran.systemctl_calls == [f"restart {timer}" for timer in TIMERS], ran.out


def test_a_variable_of_another_type_is_refused_before_it_reaches_a_host(host: Host, given: dict[str, Any]) -> None:
    ran = host.play(**{**given, "node_metrics_port": "high"})
    assert ran.code != 0
    assert "node_metrics_port" in ran.out
    assert host.files() == {}
