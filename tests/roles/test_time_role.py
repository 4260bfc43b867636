"""Role time with our module under the real ansible-playbook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.roles.overlaid import Host

CONF = "/etc/chrony/chrony.conf"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Host(tmp_path, "role: time, when: time_enabled", ("/etc",), ("chronyd",))


def test_chrony_is_configured_once_and_a_dry_run_reports_drift_without_repairing_it(host: Host) -> None:
    servers = {"time_servers": ["10.0.0.1", "10.0.0.2", "ntp.example.org"]}
    first = host.play("--check", **servers)
    assert (first.code, first.changed, host.files()) == (0, 1, {}), first.out
    second = host.play(**servers)
    assert (second.code, second.changed) == (0, 1), second.out
    text = host.files()[CONF]
    assert "server 10.0.0.1 iburst\n" in text
    assert "pool" not in text
    assert "minsources 2\n" in text
    assert host.systemctl_calls() == ["enable chrony.service", "start chrony.service"]
    third = host.play(**servers)
    assert (third.code, third.changed) == (0, 0), third.out
    drifted = host.layer("upper", "/etc") / "chrony" / "chrony.conf"
    drifted.write_text("server 192.0.2.1\n")
    fourth = host.play("--check", "--diff", **servers)
    assert (fourth.changed, drifted.read_text()) == (1, "server 192.0.2.1\n"), fourth.out
    assert "-server 192.0.2.1" in fourth.out
    assert len(host.systemctl_calls()) == 2


def test_without_servers_debians_own_pool_is_used(host: Host) -> None:
    assert host.play().code == 0
    text = host.files()[CONF]
    assert "pool 2.debian.pool.ntp.org iburst\n" in text
    assert "minsources" not in text


def test_a_host_without_its_own_clock_is_left_alone(host: Host) -> None:
    (host.folder / "bin" / "chronyd").unlink()
    off = host.play(time_enabled=False)
    assert (off.code, off.changed, host.files(), host.systemctl_calls()) == (0, 0, {}, [])
    missing = host.play()
    assert missing.code != 0
    assert "chronyd is missing: install chrony" in missing.out
