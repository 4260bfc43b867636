"""Role links with our modules under the real ansible-playbook, on real links of a separate network.

The folders that the role writes to have overlays, and systemctl is a script that records its calls, because there is no
systemd here for these units. The kernel, ip(8), and ethtool(8) if this machine has it, are real.
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
    """A host whose network has one link, ens1f0, to another network."""

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
        """Run ip(8) on the host, or at the other end of its link."""
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
    linked = Linked(tmp_path)
    yield linked
    linked.close()


ROUTER = {"to": "the rack's router", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}


def variables(name: str = "ens1f0", mtu: int = 9000, **more: Any) -> dict[str, Any]:
    offloads = {"gro": True, "tso": False} if shutil.which("ethtool") else {}
    links = {name: {"mac": MAC, "mtu": mtu, "offloads": offloads}}
    settings = {"host": "gpu-017", "address": "198.18.0.17", "mac": MAC, "links": links, "paths": [ROUTER], **more}
    files = [{"path": f"/etc/systemd/network/10-menagerie-{name}.link", "text": f"[Link]\nName={name}\n"}]
    return {"links_settings": settings, "links_files": files}


def test_the_role_sets_links_once_and_a_dry_run_reports_drift_without_repairing_it(host: Linked) -> None:
    looked = host.play("--check", **variables())
    assert (looked.code, looked.changed, host.mtu(), looked.systemctl_calls) == (0, 1, 1500, []), looked.out
    first = host.play(**variables())
    # The unit does not run in this test, so the role's check finds the port unchanged, and sets it.
    assert (first.code, first.changed, host.mtu()) == (0, 2, 9000), first.out
    assert first.systemctl_calls == ["enable menagerie-links.service", "start menagerie-links.service"]
    if shutil.which("ethtool"):
        command = ["ip", "netns", "exec", host.network, "ethtool", "-k", "ens1f0"]
        features = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "tcp-segmentation-offload: off" in features
        assert "generic-receive-offload: on" in features
    second = host.play(**variables())
    assert (second.code, second.changed, second.systemctl_calls) == (0, 0, []), second.out
    host.ip("link", "set", "ens1f0", "mtu", "1500")
    third = host.play("--check", **variables())
    assert (third.code, third.changed, host.mtu(), third.systemctl_calls) == (0, 1, 1500, []), third.out
    assert "packets of 9000 bytes don't reach the rack's router (default route) whole" in third.out
    fourth = host.play(**variables())
    assert (fourth.code, fourth.changed, host.mtu(), fourth.systemctl_calls) == (0, 1, 9000, []), fourth.out
    # Changed settings restart only the unit.
    fifth = host.play(**variables(mtu=8000, paths=[]))
    assert (fifth.code, host.mtu(), fifth.systemctl_calls) == (0, 8000, ["restart menagerie-links.service"]), fifth.out


def test_a_running_link_is_not_renamed_and_the_role_reports_that_a_boot_is_needed(host: Linked) -> None:
    ran = host.play(**variables(name="node0"))
    assert (ran.code, host.mtu()) == (0, 9000), ran.out
    assert "node0 is called ens1f0 until this host reboots" in ran.out
    assert (host.layer("upper", "/etc") / "systemd/network/10-menagerie-node0.link").exists()


def test_a_machine_other_than_the_one_in_the_hosts_file_fails(host: Linked) -> None:
    ran = host.play(**variables(address="198.18.0.18", paths=[]))
    assert ran.code != 0
    assert "this host doesn't have the address 198.18.0.18; it has 198.18.0.17 [INV-004]" in ran.out


def test_a_narrow_path_to_the_router_fails_and_one_to_another_machine_waits(host: Linked) -> None:
    host.ip("link", "set", "swp17", "mtu", "1496", far=True)
    text = "don't reach the rack's router (default route) whole; 1500 is the most that does"
    ran = host.play(**variables())
    assert (ran.code != 0, text in ran.out) == (True, True), ran.out
    other = {**ROUTER, "to": "gpu-018 in the same rack", "host": "gpu-018", "address": "198.18.0.1"}
    ran = host.play(**variables(paths=[other]))
    assert ran.code == 0, ran.out
    assert "gpu-018 in the same rack (198.18.0.1) whole; 1500 is the most that does" in ran.out


def test_with_cables_in_the_hosts_file_lldpd_runs_and_a_wrong_port_fails_the_host(host: Linked) -> None:
    neighbours = json.dumps(RECORDED).replace('"ens0f0"', '"ens1f0"', 1)
    host.command("lldpctl", f"#!/bin/sh\ncat <<'END'\n{neighbours}\nEND\n")
    vars_ = variables(paths=[])
    link = vars_["links_settings"]["links"]["ens1f0"]
    link.update(switch="leaf-1", port=17)
    ran = host.play(**vars_)
    assert ran.code == 0, ran.out
    assert ran.systemctl_calls[:2] == ["enable lldpd.service", "start lldpd.service"]
    link.update(port=18)
    ran = host.play(**vars_, links_wait_for_switches=0)
    assert ran.code != 0
    assert "gpu-017 ens1f0: leaf-1 swp17" in ran.out
    assert "the hosts file says leaf-1 18 [LNK-005]" in ran.out


def test_a_host_without_links_is_left_alone(host: Linked) -> None:
    ran = host.play()
    assert (ran.code, ran.changed, host.mtu()) == (0, 0, 1500), ran.out


def test_the_placed_program_watches_and_repairs_the_link(host: Linked) -> None:
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
