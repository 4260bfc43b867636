"""Role links with its own modules under the real ansible-playbook, on real links of a network of its own.

Folders that the role writes to are covered by others, and systemctl is a script that remembers: no systemd is here that
these units could run under. The kernel, ip(8), and ethtool(8) where this machine has it, are the real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.roles.links_hosts import RECORDED
from tests.roles.overlaid import Host, Ran
from tests.waiting import until

MAC = "02:00:5e:00:00:17"


class Linked(Host):
    """Its network has one link, ens1f0, to another."""

    def __init__(self, folder: Path) -> None:
        space = f"mglrole{os.getpid()}"
        super().__init__(folder, "role: links, when: links_settings is defined", ("/etc", "/usr/local"), network=space)
        for name in (space, f"{space}-far"):
            subprocess.run(["ip", "netns", "add", name], check=True)
        far = ["peer", "name", "swp17", "mtu", "9216", "netns", f"{space}-far"]
        self.ip("link", "add", "ens1f0", "address", MAC, "type", "veth", *far)
        self.ip("address", "add", "198.18.0.17/24", "dev", "ens1f0")
        self.ip("link", "set", "ens1f0", "up")
        self.ip("address", "add", "198.18.0.1/24", "dev", "swp17", far=True)
        self.ip("link", "set", "swp17", "up", far=True)
        self.ip("route", "add", "default", "via", "198.18.0.1")

    def close(self) -> None:
        for space in (self.network, f"{self.network}-far"):
            subprocess.run(["ip", "netns", "del", space], check=False)

    def ip(self, *words: str, far: bool = False) -> str:
        """ip(8) on the host, or at the other end of its link."""
        space = f"{self.network}-far" if far else self.network
        return subprocess.run(["ip", "-n", space, *words], check=True, capture_output=True, text=True).stdout

    def mtu(self) -> int:
        return int(json.loads(self.ip("-json", "link", "show", "ens1f0"))[0]["mtu"])

    def play(self, *words: str, **variables: Any) -> Ran:
        return super().play(*words, **{"links_commands": {"ip": "iproute2", "python3": "python3"}, **variables})


@pytest.fixture
def host(tmp_path: Path) -> Any:
    if os.geteuid() != 0:
        pytest.skip("only root may make networks")
    made = Linked(tmp_path)
    yield made
    made.close()


ROUTER = {"to": "the rack's router", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}


def variables(name: str = "ens1f0", mtu: int = 9000, **more: Any) -> dict[str, Any]:
    offloads = {"gro": True, "tso": False} if shutil.which("ethtool") else {}
    links = {name: {"mac": MAC, "mtu": mtu, "offloads": offloads}}
    settings = {"host": "gpu-017", "address": "198.18.0.17", "mac": MAC, "links": links, "paths": [ROUTER], **more}
    files = [{"path": f"/etc/systemd/network/10-menagerie-{name}.link", "text": f"[Link]\nName={name}\n"}]
    return {"links_settings": settings, "links_files": files}


def test_the_role_sets_once_and_tells_of_drift_without_mending_it(host: Linked) -> None:
    looked = host.play("--check", **variables())
    assert (looked.code, looked.changed, host.mtu(), looked.asked) == (0, 1, 1500, []), looked.out
    first = host.play(**variables())
    # The unit of this test runs nothing, so the role's own look finds the port as it came, and sets it.
    assert (first.code, first.changed, host.mtu()) == (0, 2, 9000), first.out
    assert first.asked == ["enable menagerie-links.service", "start menagerie-links.service"]
    if shutil.which("ethtool"):
        shown = ["ip", "netns", "exec", host.network, "ethtool", "-k", "ens1f0"]
        told = subprocess.run(shown, check=True, capture_output=True, text=True).stdout
        assert "tcp-segmentation-offload: off" in told
        assert "generic-receive-offload: on" in told
    second = host.play(**variables())
    assert (second.code, second.changed, second.asked) == (0, 0, []), second.out
    host.ip("link", "set", "ens1f0", "mtu", "1500")
    third = host.play("--check", **variables())
    assert (third.code, third.changed, host.mtu(), third.asked) == (0, 1, 1500, []), third.out
    assert "packets of 9000 bytes don't reach the rack's router (default route) whole" in third.out
    fourth = host.play(**variables())
    assert (fourth.code, fourth.changed, host.mtu(), fourth.asked) == (0, 1, 9000, []), fourth.out
    # Other settings restart the unit, which is all that they concern.
    fifth = host.play(**variables(mtu=8000, paths=[]))
    assert (fifth.code, host.mtu(), fifth.asked) == (0, 8000, ["restart menagerie-links.service"]), fifth.out


def test_a_running_link_is_not_renamed_and_the_role_says_that_a_boot_is_needed(host: Linked) -> None:
    ran = host.play(**variables(name="node0"))
    assert (ran.code, host.mtu()) == (0, 9000), ran.out
    assert "node0 is called ens1f0 until this host is booted again" in ran.out
    assert (host.layer("upper", "/etc") / "systemd/network/10-menagerie-node0.link").exists()


def test_a_machine_that_is_not_the_one_of_the_hosts_file_fails(host: Linked) -> None:
    ran = host.play(**variables(address="198.18.0.18", paths=[]))
    assert ran.code != 0
    assert "this host doesn't have the address 198.18.0.18; it has 198.18.0.17 [INV-004]" in ran.out


def test_a_narrow_way_to_the_router_fails_and_one_to_another_machine_waits(host: Linked) -> None:
    host.ip("link", "set", "swp17", "mtu", "1496", far=True)
    text = "don't reach the rack's router (default route) whole; 1500 is the most that does"
    ran = host.play(**variables())
    assert (ran.code != 0, text in ran.out) == (True, True), ran.out
    other = {**ROUTER, "to": "gpu-018 in the same rack", "host": "gpu-018", "address": "198.18.0.1"}
    ran = host.play(**variables(paths=[other]))
    assert ran.code == 0, ran.out
    assert "gpu-018 in the same rack (198.18.0.1) whole; 1500 is the most that does" in ran.out


def test_where_cables_are_told_of_lldpd_runs_and_a_wrong_port_fails_the_host(host: Linked) -> None:
    told = json.dumps(RECORDED).replace('"ens0f0"', '"ens1f0"', 1)
    host.command("lldpctl", f"#!/bin/sh\ncat <<'END'\n{told}\nEND\n")
    given = variables(paths=[])
    link = given["links_settings"]["links"]["ens1f0"]
    link.update(switch="leaf-1", port=17)
    ran = host.play(**given)
    assert ran.code == 0, ran.out
    assert ran.asked[:2] == ["enable lldpd.service", "start lldpd.service"]
    link.update(port=18)
    ran = host.play(**given, links_wait_for_switches=0)
    assert ran.code != 0
    assert "gpu-017 ens1f0: leaf-1 swp17" in ran.out
    assert "the hosts file says leaf-1 18 [LNK-005]" in ran.out


def test_a_host_without_links_is_left_alone(host: Linked) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, host.mtu()) == (0, 0, 1500), ran.out


def test_the_program_that_was_placed_watches_the_link_and_mends_it(host: Linked) -> None:
    assert host.play(**variables()).code == 0
    command = host.inside("exec /usr/local/sbin/menagerie-links watch")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            time.sleep(1)
            host.ip("link", "set", "ens1f0", "mtu", "1500")
            until(lambda: host.mtu() == 9000, lambda: f"the MTU stays {host.mtu()}", 20)
            assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
