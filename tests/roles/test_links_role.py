"""Role links with its own modules under the real ansible-playbook, on real links of a network of its own.

Folders that the role writes to are covered by others, and systemctl is a script that remembers: no systemd is here that
these units could run under. The kernel, ip(8), and ethtool(8) where this machine has it, are the real ones.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.roles.links_hosts import RECORDED

ROOT = Path(__file__).parents[2]
WRITTEN = ("/etc", "/usr/local")
MAC = "02:00:5e:00:00:17"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [{role: links, when: links_settings is defined}]
"""
# `systemctl show` as systemd prints it; every other verb is noted, and its time is the unit's start.
SYSTEMCTL = """#!{python}
import sys, time
from pathlib import Path
folder = Path({folder!r})
if sys.argv[1] == "show":
    start = folder / sys.argv[2]
    on = start.exists()
    print("LoadState=loaded\\nNeedDaemonReload=no")
    print("ActiveState=" + ("active" if on else "inactive"))
    print("UnitFileState=" + ("enabled" if on else "disabled"))
    print("InactiveExitTimestampMonotonic=" + (start.read_text() if on else "0"))
else:
    with (folder / "verbs").open("a") as out:
        out.write(" ".join(sys.argv[1:]) + "\\n")
    if sys.argv[1] in ("start", "restart"):
        (folder / sys.argv[2]).write_text(str(int(time.monotonic() * 1e6)))
"""


class Ran(NamedTuple):
    code: int
    out: str
    changed: int


class Host:
    """A network namespace with one link, ens1f0, to another; files and units are folders."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.space = folder, f"mglrole{os.getpid()}"
        (folder / "play.yml").write_text(PLAY)
        (folder / "bin").mkdir()
        (folder / "units").mkdir()
        program = folder / "bin" / "systemctl"
        program.write_text(SYSTEMCTL.format(python=sys.executable, folder=str(folder / "units")))
        program.chmod(0o755)
        for name in WRITTEN:
            for part in ("upper", "work"):
                self.layer(part, name).mkdir(parents=True)
        for space in (self.space, f"{self.space}-far"):
            subprocess.run(["ip", "netns", "add", space], check=True)
        far = ["peer", "name", "swp17", "mtu", "9216", "netns", f"{self.space}-far"]
        self.ip("link", "add", "ens1f0", "address", MAC, "type", "veth", *far)
        self.ip("address", "add", "198.18.0.17/24", "dev", "ens1f0")
        for space, name, address in ((self.space, "ens1f0", ""), (f"{self.space}-far", "swp17", "198.18.0.1/24")):
            if address:
                subprocess.run(["ip", "-n", space, "address", "add", address, "dev", name], check=True)
            subprocess.run(["ip", "-n", space, "link", "set", name, "up"], check=True)
        self.ip("route", "add", "default", "via", "198.18.0.1")

    def close(self) -> None:
        for space in (self.space, f"{self.space}-far"):
            subprocess.run(["ip", "netns", "del", space], check=False)

    def layer(self, part: str, name: str) -> Path:
        return self.folder / part / name.strip("/").replace("/", "-")

    def ip(self, *words: str) -> str:
        done = subprocess.run(["ip", "-n", self.space, *words], check=True, capture_output=True, text=True)
        return done.stdout

    def mtu(self) -> int:
        return int(json.loads(self.ip("-json", "link", "show", "ens1f0"))[0]["mtu"])

    def inside(self, command: list[str]) -> list[str]:
        """The command with the host's network and files."""
        mounts = [
            f"mount -t overlay x -o lowerdir={name},upperdir={self.layer('upper', name)},workdir={self.layer('work', name)} {name}"
            for name in WRITTEN
        ]
        script = " && ".join([*mounts, "echo mounted", f"exec {shlex.join(command)}"])
        return ["ip", "netns", "exec", self.space, "unshare", "--mount", "sh", "-c", script]

    def play(self, *words: str, **variables: Any) -> Ran:
        given = {"links_commands": {"ip": "iproute2", "python3": "python3"}, **variables}
        ansible = str(Path(sys.executable).parent / "ansible-playbook")
        command = [ansible, "-i", "localhost,", "-e", json.dumps(given), *words, str(self.folder / "play.yml")]
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
        done = subprocess.run(
            self.inside(command), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no mounts of its own here: {done.stderr.strip()}")
        found = re.search(r"changed=(\d+)", done.stdout)
        return Ran(done.returncode, done.stdout + done.stderr, int(found[1]) if found else -1)

    def verbs(self) -> list[str]:
        """What systemctl was asked to do since the last time."""
        path = self.folder / "units" / "verbs"
        told = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return told


@pytest.fixture
def host(tmp_path: Path) -> Any:
    if os.geteuid() != 0:
        pytest.skip("only root may make networks")
    made = Host(tmp_path)
    yield made
    made.close()


ROUTER = {"to": "the rack's router", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}


def variables(name: str = "ens1f0", mtu: int = 9000, **more: Any) -> dict[str, Any]:
    offloads = {"gro": True, "tso": False} if shutil.which("ethtool") else {}
    links = {name: {"mac": MAC, "mtu": mtu, "offloads": offloads}}
    settings = {"host": "gpu-017", "address": "198.18.0.17", "mac": MAC, "links": links, "paths": [ROUTER], **more}
    files = [{"path": f"/etc/systemd/network/10-menagerie-{name}.link", "text": f"[Link]\nName={name}\n"}]
    return {"links_settings": settings, "links_files": files}


def test_the_role_sets_once_and_tells_of_drift_without_mending_it(host: Host) -> None:
    looked = host.play("--check", **variables())
    assert (looked.code, looked.changed, host.mtu(), host.verbs()) == (0, 1, 1500, []), looked.out
    first = host.play(**variables())
    # The unit of this test runs nothing, so the role's own look finds the port as it came, and sets it.
    assert (first.code, first.changed, host.mtu()) == (0, 2, 9000), first.out
    assert host.verbs() == ["enable menagerie-links.service", "start menagerie-links.service"]
    if shutil.which("ethtool"):
        shown = ["ip", "netns", "exec", host.space, "ethtool", "-k", "ens1f0"]
        told = subprocess.run(shown, check=True, capture_output=True, text=True).stdout
        assert "tcp-segmentation-offload: off" in told
        assert "generic-receive-offload: on" in told
    second = host.play(**variables())
    assert (second.code, second.changed, host.verbs()) == (0, 0, []), second.out
    host.ip("link", "set", "ens1f0", "mtu", "1500")
    third = host.play("--check", **variables())
    assert (third.code, third.changed, host.mtu(), host.verbs()) == (0, 1, 1500, []), third.out
    assert "packets of 9000 bytes don't reach the rack's router (default route) whole" in third.out
    fourth = host.play(**variables())
    assert (fourth.code, fourth.changed, host.mtu(), host.verbs()) == (0, 1, 9000, []), fourth.out
    # Other settings restart the unit, which is all that they concern.
    fifth = host.play(**variables(mtu=8000, paths=[]))
    assert (fifth.code, host.mtu(), host.verbs()) == (0, 8000, ["restart menagerie-links.service"]), fifth.out


def test_a_running_link_is_not_renamed_and_the_role_says_that_a_boot_is_needed(host: Host) -> None:
    ran = host.play(**variables(name="node0"))
    assert (ran.code, host.mtu()) == (0, 9000), ran.out
    assert "node0 is called ens1f0 until this host is booted again" in ran.out
    assert (host.layer("upper", "/etc") / "systemd/network/10-menagerie-node0.link").exists()


def test_a_machine_that_is_not_the_one_of_the_hosts_file_fails(host: Host) -> None:
    ran = host.play(**variables(address="198.18.0.18", paths=[]))
    assert ran.code != 0
    assert "this host doesn't have the address 198.18.0.18; it has 198.18.0.17 [INV-004]" in ran.out


def test_a_narrow_way_to_the_router_fails_and_one_to_another_machine_waits(host: Host) -> None:
    subprocess.run(["ip", "-n", f"{host.space}-far", "link", "set", "swp17", "mtu", "1496"], check=True)
    text = "don't reach the rack's router (default route) whole; 1500 is the most that does"
    ran = host.play(**variables())
    assert (ran.code != 0, text in ran.out) == (True, True), ran.out
    other = {**ROUTER, "to": "gpu-018 in the same rack", "host": "gpu-018", "address": "198.18.0.1"}
    ran = host.play(**variables(paths=[other]))
    assert ran.code == 0, ran.out
    assert "gpu-018 in the same rack (198.18.0.1) whole; 1500 is the most that does" in ran.out


def test_where_cables_are_told_of_lldpd_runs_and_a_wrong_port_fails_the_host(host: Host) -> None:
    program = host.folder / "bin" / "lldpctl"
    told = json.dumps(RECORDED).replace('"ens0f0"', '"ens1f0"', 1)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{told}\nEND\n")
    program.chmod(0o755)
    given = variables(paths=[])
    link = given["links_settings"]["links"]["ens1f0"]
    link.update(switch="leaf-1", port=17)
    ran = host.play(**given)
    assert ran.code == 0, ran.out
    assert host.verbs()[:2] == ["enable lldpd.service", "start lldpd.service"]
    link.update(port=18)
    ran = host.play(**given, links_wait_for_switches=0)
    assert ran.code != 0
    assert "gpu-017 ens1f0: leaf-1 swp17" in ran.out
    assert "the hosts file says leaf-1 18 [LNK-005]" in ran.out


def test_a_host_without_links_is_left_alone(host: Host) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, host.mtu()) == (0, 0, 1500), ran.out


def test_the_program_that_was_placed_watches_the_link_and_mends_it(host: Host) -> None:
    assert host.play(**variables()).code == 0
    command = host.inside(["/usr/local/sbin/menagerie-links", "watch"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            time.sleep(1)
            host.ip("link", "set", "ens1f0", "mtu", "1500")
            until = time.monotonic() + 20
            while host.mtu() != 9000 and time.monotonic() < until:
                time.sleep(0.1)
            assert host.mtu() == 9000
            assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
