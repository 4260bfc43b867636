"""`menagerie reboot`: drained, booted, uncordoned."""

from __future__ import annotations

import pytest

from clients.waiting import wait_until
from sandbox.lab.hosts import run as on_host
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

HOST = "worker-2"


def _boot() -> str:
    return on_host(HOST, ["cat", "/proc/sys/kernel/random/boot_id"]).stdout


def unhealthy() -> str:
    status = menagerie("status", "lab", "--json")
    return "" if status.code == 0 else status.out


def test_a_host_whose_packages_require_it_is_rebooted_and_takes_work_again(lab: Run) -> None:
    """Requested by the file that Debian's kernel packages leave; /run is in memory, so a boot clears it."""
    on_host(HOST, ["sh", "-c", "touch /run/reboot-required; echo linux-image-test >/run/reboot-required.pkgs"])
    before = _boot()
    dry_run = menagerie("reboot", "lab", "--dry-run", "--json")
    assert dry_run.code == 0, dry_run.err
    assert _boot() == before
    done = menagerie("reboot", "lab", "--json")
    assert done.code == 0, done.err
    assert _boot() != before
    again = menagerie("reboot", "lab")
    assert (again.code, again.out.strip()) == (0, "lab: no reboot needed; checked 3 hosts"), again.err
    # Pods of DaemonSets start when the node is Ready; `status` counts them.
    wait_until(unhealthy, 60, print)
