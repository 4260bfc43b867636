"""Role vpn_gateway by the real ansible-playbook, on a machine with the real strongSwan and FRR; only systemd is a script."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from inventories.gateways import variables
from network.gateway import RouterConfig
from tests.vpn.authority import chain, signed
from tests.vpn.machines import Machine, wire
from tests.vpn.test_certificates import router_of
from tests.vpn.world import KEY

pytestmark = [pytest.mark.engine, pytest.mark.timed, pytest.mark.xdist_group("vpn")]

ROOT = Path(__file__).parents[2]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [{role: vpn_gateway}]
"""
SYSTEMCTL = r'''#!/usr/bin/python3
"""What host_state and menagerie-vpn ask of systemd, with real daemons behind it."""
import json, os, subprocess, sys, time
KEPT = "/run/units.json"
units = json.load(open(KEPT)) if os.path.exists(KEPT) else {}
verb, unit = sys.argv[1], (sys.argv[2:] or [""])[0]
with open("/run/asked", "a") as asked:
    if verb != "show":
        asked.write(f"{verb} {unit}\n")
own = units.setdefault(unit, {"enabled": False, "at": 0})
def start():
    if unit == "strongswan.service":
        subprocess.run(["/usr/local/sbin/menagerie-vpn", "reset"], check=True)
        subprocess.run(["sh", "-c", "pkill -x charon-systemd; exec setsid /usr/sbin/charon-systemd >/dev/null 2>&1 &"])
        for _ in range(100):
            if subprocess.run(["swanctl", "--load-all", "--noprompt"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
    elif unit == "frr.service":
        # Like `Machine.start_frr`: mgmtd is there since FRR 9, and daemons of FRR 10 keep their output open.
        for daemon in ("mgmtd", "zebra", "staticd", "bgpd"):
            path = f"/usr/lib/frr/{daemon}"
            if os.path.exists(path):
                subprocess.run([path, "-d", "-A", "127.0.0.1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["vtysh", "-b"], check=True, capture_output=True)
    else:
        subprocess.run(["/usr/local/sbin/menagerie-vpn", "links" if "links" in unit else "rules"], check=True)
    own["at"] = int(time.monotonic() * 1e6)
if verb == "show":
    now = own["at"]
    print("LoadState=loaded", "ActiveState=" + ("active" if now else "inactive"), "NeedDaemonReload=no",
          "UnitFileState=" + ("enabled" if own["enabled"] else "disabled"),
          f"InactiveExitTimestampMonotonic={now}", f"ExecMainStartTimestampMonotonic={now}", sep="\n")
elif verb == "enable":
    own["enabled"] = True
elif verb in ("start", "restart"):
    start()
json.dump(units, open(KEPT, "w"))
'''


class Ran(NamedTuple):
    code: int
    out: str
    changed: int


@pytest.fixture
def site(tmp_path: Path, programs: Path, router: RouterConfig) -> Iterator[Machine]:
    """Yield a router's machine. On kernels without XFRM interfaces, other interfaces have their names there."""
    machine = Machine("site", tmp_path, programs)
    other = Machine("far", tmp_path, programs)
    for line in router.lines:
        wire(machine, line.interface, other, line.interface)
    machine.write("/usr/local/sbin/systemctl", SYSTEMCTL, mode="0755")
    machine.write("/etc/play.yml", PLAY)
    yield machine
    other.end()
    machine.end()


def play(machine: Machine, router: RouterConfig, *words: str) -> Ran:
    keys = {line.name: KEY for line in router.lines}
    given = json.dumps({**variables(router, keys), "vpn_gateway_packages": []})
    machine.write("/run/given.json", given, mode="0600")
    environment = {
        "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
        "ANSIBLE_LIBRARY": str(ROOT / "roles" / "modules"),
        "ANSIBLE_MODULE_UTILS": str(ROOT / "roles" / "module_utils"),
        "ANSIBLE_LOOKUP_PLUGINS": str(ROOT / "roles" / "lookups"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_HOME": "/run/ansible",
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/run",
    }
    ansible = str(Path(sys.executable).parent / "ansible-playbook")
    command = [*machine.enter(), ansible, "-i", "localhost,", "-e", "@/run/given.json", *words, "/etc/play.yml"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=machine.folder, capture_output=True, text=True, check=False
    )
    match = re.search(r"changed=(\d+)", done.stdout)
    return Ran(done.returncode, done.stdout + done.stderr, int(match[1]) if match else -1)


def restarts(machine: Machine) -> list[str]:
    calls = machine.run("cat", "/run/asked").splitlines()
    machine.run("truncate", "-s0", "/run/asked")
    return [line for line in calls if line.startswith(("start", "restart"))]


def test_the_role_configures_a_router_once_reports_drift_and_repairs_it_without_restarts(
    site: Machine, router: RouterConfig
) -> None:
    first = play(site, router)
    assert first.code == 0, first.out
    assert first.changed > 0
    assert [line.split()[1] for line in restarts(site)] == [
        "menagerie-vpn-links.service", "menagerie-vpn-rules.service", "strongswan.service", "frr.service",
    ]  # fmt: skip
    assert site.run("stat", "-c", "%a %U", "/etc/swanctl/conf.d/menagerie-keys.conf") == "600 root\n"
    loaded = re.findall(r"list-conn event \{(\S+) ", site.run("swanctl", "--list-conns", "--raw"))
    assert sorted(loaded) == sorted(line.name for line in router.lines)
    assert site.ask("vtysh", "-C", "-f", "/etc/frr/frr.conf").returncode == 0
    second = play(site, router)
    assert (second.code, second.changed, restarts(site)) == (0, 0, []), second.out

    # Drift: a missing route filter, no rules, another MTU, another setting, another key.
    drift = ["-c", "configure terminal", "-c", "router bgp 65010", "-c", "address-family ipv4 unicast"]
    site.run("vtysh", *drift, "-c", "no neighbor 169.254.6.1 prefix-list to-horus out")
    site.run("nft", "flush", "chain", "inet", "menagerie_vpn", "forward")
    site.run("ip", "link", "set", "vpn-6-1", "mtu", "1500")
    site.run("sed", "-i", "s/dpd_delay = 10s/dpd_delay = 99s/", "/etc/swanctl/conf.d/menagerie.conf")
    site.run("sed", "-i", "s/secret = 0s/secret = 0sAAAA/", "/etc/swanctl/conf.d/menagerie-keys.conf")
    looked = play(site, router, "--check", "--diff", "-vvv")
    assert (looked.code, looked.changed) == (0, 3), looked.out
    for report in (
        "dpd_delay = 99s",
        "vpn-6-1: MTU 1500 -> 1378",
        "nftables: table menagerie_vpn repaired",
        "to-horus out",
    ):
        assert report in looked.out
    for key in (KEY, base64.b64encode(KEY.encode()).decode()):
        assert key not in looked.out
    assert site.run("cat", "/sys/class/net/vpn-6-1/mtu") == "1500\n"
    repaired = play(site, router)
    assert (repaired.code, repaired.changed, restarts(site)) == (0, 3, []), repaired.out
    assert json.loads(site.run("menagerie-vpn", "apply", "--json")) == {"changed": []}
    assert "prefix-list to-horus out" in site.run("vtysh", "-c", "show running-config")
    assert site.run("cat", "/sys/class/net/vpn-6-1/mtu") == "1378\n"
    shown = json.loads(site.ask("menagerie-vpn", "status", "--json").stdout)
    assert [tunnel["connection"] for tunnel in shown] == [line.name for line in router.lines]
    assert {tunnel["bgp"] for tunnel in shown} <= {"Active", "Connect", "Idle"}


def test_the_role_places_certificates_and_loads_none_without_the_routers_key(
    site: Machine, build, tmp_path: Path
) -> None:
    sub, root = chain("example")
    own = signed("CN=sjc1-edge-1", sub)
    (tmp_path / "edge-1.pem").write_text(own.pem)
    (tmp_path / "ca.pem").write_text(sub.pem + root.pem)
    router = router_of(build, tmp_path)
    other = Machine("beyond", tmp_path, site.programs)
    for line in router.lines:
        if line.interface not in site.run("ip", "-br", "link"):
            wire(site, line.interface, other, line.interface)
    first = play(site, router)
    assert first.code
    assert "/etc/swanctl/private/menagerie-horus.pem is missing" in first.out
    assert site.run("cat", "/etc/swanctl/x509/menagerie-horus.pem") == own.pem
    assert site.run("cat", "/etc/swanctl/x509ca/menagerie-horus-1.pem") == root.pem
    site.write("/etc/swanctl/private/menagerie-horus.pem", own.key_pem, mode="0600")
    second, third = play(site, router), play(site, router)
    assert (second.code, third.code, third.changed) == (0, 0, 0), second.out + third.out
    shown = json.loads(site.ask("menagerie-vpn", "status", "--json").stdout)
    assert {each["expires"] for each in shown} == {int(own.certificate.not_valid_after_utc.timestamp())}
    until = f"{own.certificate.not_valid_after_utc:%Y-%m-%d}, "
    assert until in site.ask("menagerie-vpn", "status").stdout
    other.end()
