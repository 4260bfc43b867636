"""Roles gpu and preflight with their own module under the real ansible-playbook, on copies of the folders that they write to.

systemd is a script that remembers what was started and when; a container has none.
"""

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
import yaml

from cluster import hardware

ROOT = Path(__file__).parents[2]
WRITTEN = ("/etc", "/usr/local")
SYSTEMCTL = """#!/usr/bin/python3
import os, sys, time
verb, unit = sys.argv[1], (sys.argv[2:] + [""])[0]
known = os.path.join("FOLDER/units", unit)
if verb == "show":
    since = open(known).read() if os.path.exists(known) else ""
    print("LoadState=loaded\\nNeedDaemonReload=no")
    print("ActiveState=" + ("active" if since else "inactive"))
    print("UnitFileState=" + ("enabled" if os.path.exists(known) else "disabled"))
    print("InactiveExitTimestampMonotonic=" + (since or "0"))
    sys.exit()
with open("FOLDER/asked", "a") as out:
    print(verb, unit, file=out)
if verb in ("start", "restart"):
    with open(known, "w") as out:
        out.write(str(int(time.monotonic() * 1e6)))
"""


class Ran(NamedTuple):
    code: int
    out: str
    changed: int
    asked: list[str]
    """What was asked of systemd in this run."""


class Host:
    """This machine, with other files in the folders that the roles write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (play,) = yaml.safe_load((ROOT / "site.yml").read_text())
        ours = [entry for entry in play["roles"] if entry["role"] in ("gpu", "preflight")]
        given = {"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": ours}
        (folder / "play.yml").write_text(yaml.safe_dump([given]))
        (folder / "bin").mkdir()
        (folder / "units").mkdir()
        (folder / "bin" / "systemctl").write_text(SYSTEMCTL.replace("FOLDER", str(folder)))
        (folder / "bin" / "systemctl").chmod(0o755)
        for name in WRITTEN:
            for part in ("upper", "work"):
                self._layer(part, name).mkdir(parents=True)

    def _layer(self, part: str, name: str) -> Path:
        return self.folder / part / name.strip("/").replace("/", "-")

    def play(self, *words: str, **variables: Any) -> Ran:
        ansible = str(Path(sys.executable).parent / "ansible-playbook")
        command = [ansible, "-i", "localhost,", "-e", json.dumps(variables), *words, str(self.folder / "play.yml")]
        mounts = [
            f"mount -t overlay x -o lowerdir={name},upperdir={self._layer('upper', name)},workdir={self._layer('work', name)} {name}"
            for name in WRITTEN
        ]
        script = " && ".join([*mounts, "echo mounted", shlex.join(command)])
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
            "ANSIBLE_LIBRARY": str(ROOT / "roles" / "modules"),
            "ANSIBLE_MODULE_UTILS": str(ROOT / "roles" / "module_utils"),
            "ANSIBLE_LOOKUP_PLUGINS": str(ROOT / "roles" / "lookups"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "LC_ALL": "C.UTF-8",
        }
        log = self.folder / "asked"
        log.write_text("")
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no mounts of its own here: {done.stderr.strip()}")
        found = re.search(r"changed=(\d+)", done.stdout)
        out = done.stdout + done.stderr
        return Ran(done.returncode, out, int(found[1]) if found else -1, log.read_text().splitlines())

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


KIND = hardware.of_kind("dgx-h100", "580").model_dump(mode="json", exclude_none=True)
GPUS = {"gpu_driver_source": "image", "gpu_driver_branch": "580", "preflight_expected": KIND}
TIMER, SERVICE = "menagerie-preflight.timer", "menagerie-gpu.service"


def test_a_worker_that_neither_is_asked_of_is_left_alone(host: Host) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, ran.asked, host.files()) == (0, 0, [], {}), ran.out


def test_both_are_placed_and_started_and_a_second_run_changes_nothing(host: Host) -> None:
    ran = host.play(**GPUS)
    assert (ran.code, ran.changed) == (0, 2), ran.out
    assert ran.asked == [f"enable {SERVICE}", f"start {SERVICE}", f"enable {TIMER}", f"start {TIMER}"]
    told = json.loads(host.files()["/etc/menagerie/preflight.json"])
    assert (told["node"], told["expected"]["kind"], told["expected"]["gpus"]["driver_branch"]) == (
        "localhost",
        "dgx-h100",
        "580",
    )
    again = host.play(**GPUS)
    assert (again.code, again.changed, again.asked) == (0, 0, []), again.out


def test_the_check_that_was_placed_runs_where_it_stands(host: Host) -> None:
    """Every file of the package is placed: it would not even be imported without one."""
    ran = host.play(preflight_expected={})
    assert (ran.code, ran.asked) == (0, [f"enable {TIMER}", f"start {TIMER}"]), ran.out
    library = host.folder / "upper" / "usr-local" / "lib" / "menagerie"
    program = host.folder / "upper" / "usr-local" / "sbin" / "menagerie-preflight"
    text = program.read_text().replace("/usr/local/lib/menagerie", str(library))
    done = subprocess.run(["sh", "-c", text, "sh", "--print"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].split(" (")[0]) == (0, "compared with: any host"), done


def test_a_dry_run_says_what_differs_and_mends_nothing(host: Host) -> None:
    host.play(**GPUS)
    before = host.files()
    ran = host.play("--check", "--diff", **{**GPUS, "gpu_driver_branch": "590"})
    assert (ran.code, ran.changed, ran.asked) == (0, 1, []), ran.out
    assert '"branch": "590"' in ran.out
    assert host.files() == before


def test_only_what_changed_is_restarted(host: Host) -> None:
    host.play(**GPUS)
    assert host.play(**GPUS, preflight_every="5min").asked == [f"restart {TIMER}"]
    assert host.play(**GPUS, preflight_every="5min", gpu_peermem=True).asked == [f"restart {SERVICE}"]


def test_a_check_that_does_not_exist_is_refused_before_a_host_has_it(host: Host) -> None:
    ran = host.play(preflight_expected={}, preflight_only_watched=["gpu"])
    assert ran.code != 0
    assert "value of preflight_only_watched must be one or more of: cpu, memory, disks" in ran.out
    assert host.files() == {}


def test_a_source_of_drivers_that_does_not_exist_is_refused(host: Host) -> None:
    ran = host.play(**{**GPUS, "gpu_driver_source": "usb"})
    assert ran.code != 0
    assert "value of gpu_driver_source must be one of: image, nvidia, debian" in ran.out
    assert host.files() == {}
