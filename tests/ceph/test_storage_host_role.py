"""Role storage_host under the real ansible-playbook with its own modules, on copies of the folders that it writes to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.roles.overlaid import Host, Ran

NETWORKS: dict[str, list[str]] = {"public": [], "cluster": []}
RULE = {"by_id": "nvme-NO_SUCH_MODEL*", "count": 2, "min_size": 1, "max_size": None, "rotational": False}
UDEV = "mount -t tmpfs x /run && mkdir /run/udev && touch /run/udev/control"


class Storage(Host):
    """A host on which nothing reaches this machine's kernel, and udev seems to run."""

    def __init__(self, folder: Path) -> None:
        role = "role: storage_host, when: storage_host_settings is defined"
        super().__init__(folder, role, ("/etc", "/usr/local"))

    def play(self, *words: str, before: str = UDEV, **variables: Any) -> Ran:
        live = Path("/proc/sys/fs/aio-max-nr").read_text().strip()
        given = {"storage_host_kernel_modules": [], "storage_host_sysctls": {"fs.aio-max-nr": int(live)}, **variables}
        return super().play(*words, before=before, **given)


@pytest.fixture
def host(tmp_path: Path) -> Storage:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Storage(tmp_path)


def test_the_role_writes_once_and_reports_drift_in_check_mode(host: Storage) -> None:
    given = {
        "storage_host_settings": {"disks": {}, "networks": NETWORKS},
        "storage_host_lvm_filter": ["r|^/dev/rbd|", "r|^/x$|"],
    }
    first = host.play("--check", **given)
    assert (first.code, first.changed, host.files()) == (0, 1, {}), first.out
    second = host.play(**given)
    assert (second.code, second.changed) == (0, 1), second.out
    files = host.files()
    assert set(files) >= {
        "/usr/local/sbin/menagerie-disks",
        "/etc/menagerie/storage.json",
        "/etc/sysctl.d/70-menagerie-storage.conf",
        "/etc/modules-load.d/menagerie-storage.conf",
        "/etc/lvm/lvmlocal.conf",
    }
    assert '    global_filter = [ "r|^/dev/rbd|", "r|^/x$|", "a|.*|" ]\n' in files["/etc/lvm/lvmlocal.conf"]
    assert json.loads(files["/etc/menagerie/storage.json"]) == given["storage_host_settings"]
    third = host.play(**given)
    assert (third.code, third.changed, host.files()) == (0, 0, files), third.out
    drifted = host.layer("upper", "/etc") / "menagerie" / "storage.json"
    drifted.write_text("{}\n")
    # The program reads the changed file, so the host fails and says so; nothing is repaired.
    fourth = host.play("--check", "--diff", **given)
    assert (fourth.changed, drifted.read_text()) == (1, "{}\n"), fourth.out
    assert '+    "disks": {},' in fourth.out


def test_a_host_without_the_disks_of_the_spec_fails_with_a_reason(host: Storage) -> None:
    ran = host.play(
        storage_host_settings={"disks": {"nvme": RULE}, "networks": {**NETWORKS, "cluster": ["198.51.100.0/24"]}}
    )
    assert ran.code != 0
    assert "0 empty disks match ceph.disks.nvme (nvme-NO_SUCH_MODEL*), not 2" in ran.out
    assert "has no address in networks.cluster (198.51.100.0/24)" in ran.out


def test_a_host_without_storage_is_left_alone(host: Storage) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, host.files()) == (0, 0, {}), ran.out
