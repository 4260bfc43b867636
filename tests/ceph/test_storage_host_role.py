"""Role storage_host with its own modules under the real ansible-playbook, on copies of the folders that it writes to."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN = ("/etc", "/usr/local/sbin")
NETWORKS: dict[str, list[str]] = {"public": [], "cluster": []}
RULE = {"by_id": "nvme-NO_SUCH_MODEL*", "count": 2, "min_size": 1, "max_size": None, "rotational": False}
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [{role: storage_host, when: storage_host_settings is defined}]
"""


class Ran(NamedTuple):
    code: int
    out: str
    changed: int


class Host:
    """This machine, with other files in the folders that the role writes to; nothing reaches its kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "play.yml").write_text(PLAY)
        for name in WRITTEN:
            for part in ("upper", "work"):
                self._layer(part, name).mkdir(parents=True)

    def _layer(self, part: str, name: str) -> Path:
        return self.folder / part / name.strip("/").replace("/", "-")

    def play(self, *words: str, **variables: Any) -> Ran:
        live = Path("/proc/sys/fs/aio-max-nr").read_text().strip()
        given = {"storage_host_kernel_modules": [], "storage_host_sysctls": {"fs.aio-max-nr": int(live)}, **variables}
        ansible = str(Path(sys.executable).parent / "ansible-playbook")
        command = [ansible, "-i", "localhost,", "-e", json.dumps(given), *words, str(self.folder / "play.yml")]
        mounts = [
            f"mount -t overlay x -o lowerdir={name},upperdir={self._layer('upper', name)},workdir={self._layer('work', name)} {name}"
            for name in WRITTEN
        ]
        udev = "mount -t tmpfs x /run && mkdir /run/udev && touch /run/udev/control"
        script = " && ".join([*mounts, udev, "echo mounted", shlex.join(command)])
        environment = {
            **os.environ,
            "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
            "ANSIBLE_LIBRARY": str(ROOT / "roles" / "modules"),
            "ANSIBLE_MODULE_UTILS": str(ROOT / "roles" / "module_utils"),
            "ANSIBLE_LOOKUP_PLUGINS": str(ROOT / "roles" / "lookups"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no mounts of its own here: {done.stderr.strip()}")
        found = re.search(r"changed=(\d+)", done.stdout)
        return Ran(done.returncode, done.stdout + done.stderr, int(found[1]) if found else -1)

    def files(self) -> dict[str, str]:
        """What was written, by its path on the host."""
        found = {}
        for name in WRITTEN:
            top = self._layer("upper", name)
            found.update({f"{name}/{p.relative_to(top)}": p.read_text() for p in top.rglob("*") if p.is_file()})
        return found


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    return Host(tmp_path)


def test_the_role_writes_once_and_tells_of_drift_without_mending_it(host: Host) -> None:
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
    drifted = host.folder / "upper" / "etc" / "menagerie" / "storage.json"
    drifted.write_text("{}\n")
    # The program reads what somebody left there, so the host fails, and says so; nothing is mended.
    fourth = host.play("--check", "--diff", **given)
    assert (fourth.changed, drifted.read_text()) == (1, "{}\n"), fourth.out
    assert '+    "disks": {},' in fourth.out


def test_a_host_without_the_disks_of_the_spec_fails_and_says_so(host: Host) -> None:
    ran = host.play(
        storage_host_settings={"disks": {"nvme": RULE}, "networks": {**NETWORKS, "cluster": ["198.51.100.0/24"]}}
    )
    assert ran.code != 0
    assert "0 empty disks are as ceph.disks.nvme says (nvme-NO_SUCH_MODEL*), not 2" in ran.out
    assert "has no address in networks.cluster (198.51.100.0/24)" in ran.out


def test_a_host_that_is_no_storage_host_is_left_alone(host: Host) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, host.files()) == (0, 0, {}), ran.out
