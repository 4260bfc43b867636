"""Role vpn_gateway on a host that boots systemd, with the packages' own units and a gateway that answers.

IKE and its keys are real, in user space; tests/vpn covers packets in tunnels. The kernel has no XFRM interfaces, so
another interface has the tunnel's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clients.waiting import wait_until
from cluster.load import find_cluster, load_cluster
from cluster.sites import Vpn
from inventories import gateways
from inventories.build import Inventory
from inventories.report import RunReport
from inventories.run import run
from network import swanctl
from network.gateway import Joined, RouterConfig, routers
from sandbox.lab import hosts
from sandbox.lab.errors import LabError
from tests.lab.spare import host, on, put
from tests.lab.support import ROOT, Run
from tests.vpn.world import KEY, USER_SPACE, answering

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

NAME, ADDRESS = "edge-1", "10.78.2.50"
END, END_ADDRESS = "gateway-1", "10.78.1.50"
UNITS = ("menagerie-vpn-links.service", "menagerie-vpn-rules.service", "strongswan.service", "frr.service")
VPN = {
    "asn": 65010,
    "inside": "169.254.10.0/29",
    "networks": ["10.9.0.0/24"],
    "routers": {NAME: {"address": ADDRESS, "host": ADDRESS, "psk": {"secret": "vpn-edge-1"}}},
}


@pytest.fixture(scope="module")
def router() -> RouterConfig:
    cluster = load_cluster(find_cluster("lab", ROOT))
    site = cluster.spec.sites["onprem"].model_copy(update={"vpn": Vpn.model_validate(VPN, strict=False)})
    spec = cluster.spec.model_copy(update={"sites": {"onprem": site}})
    (edge_router,) = routers([Joined(cluster.model_copy(update={"spec": spec}), {f"onprem/{NAME}": (END_ADDRESS,)})])
    return edge_router


@pytest.fixture(scope="module")
def inventory(router: RouterConfig, key: Path) -> Inventory:
    variables = {"vpn_gateway_packages": [], "vpn_gateway_unsettable": "report"}
    keys = {f"{router.machine}/{line.name}": KEY for line in router.lines}
    built = gateways.build("lab", [router], keys, {"lab": variables})
    public = key.with_suffix(".pub").read_text()
    return replace(built, known_hosts=f"{ADDRESS} {public}", unknown_hosts=())


@pytest.fixture(scope="module")
def edge(lab: Run, router: RouterConfig, key: Path) -> Iterator[str]:
    (line,) = router.lines
    with host(NAME, "r2", ADDRESS, key), host(END, "r1", END_ADDRESS, key):
        for name in (NAME, END):
            put(name, "/etc/strongswan.d/zz-user-space.conf", USER_SPACE)
        on(NAME, f"ip link add {line.interface} type veth peer name nowhere && ip link set nowhere up")
        put(END, "/etc/strongswan.d/menagerie.conf", swanctl.daemon())
        put(END, "/etc/swanctl/conf.d/menagerie.conf", answering(line))
        keys = swanctl.secrets([line], {line.name: KEY}).replace(END_ADDRESS, ADDRESS)
        put(END, "/etc/swanctl/conf.d/menagerie-keys.conf", keys)
        on(END, "systemctl start strongswan")
        yield NAME


def tunnel_missing() -> str:
    """Return why the tunnel is not up; BGP has no peer."""
    status = hosts.run(NAME, ["menagerie-vpn", "status", "--json"])
    (tunnel,) = json.loads(status.stdout or "[{}]")
    ups = on(NAME, f"ip -o link show {tunnel['interface']}") if tunnel else ""
    return "" if tunnel and tunnel["ike"] == "ESTABLISHED" and ",UP" in ups else f"{tunnel} {ups} {status.stderr}"


def configured(inventory: Inventory, key: Path, *, check: bool = False) -> RunReport:
    report = run(inventory, check=check, diff=check, private_key=key, playbook=gateways.PLAYBOOK)
    assert report.succeeded, report.failures
    return report


def test_a_host_is_configured_as_a_router_once_and_its_tunnel_comes_up(
    edge: str, inventory: Inventory, key: Path
) -> None:
    assert configured(inventory, key).changed > 0
    wait_until(tunnel_missing, 30, print)
    assert configured(inventory, key).changed == 0
    assert on(edge, f"systemctl is-active {' '.join(UNITS)}").split() == ["active"] * len(UNITS)


def test_drift_is_reported_then_corrected_without_a_restart(edge: str, inventory: Inventory, key: Path) -> None:
    since = on(edge, f"systemctl show --value -p ActiveEnterTimestampMonotonic {' '.join(UNITS)}")
    on(edge, "sed -i 's/dpd_delay = 10s/dpd_delay = 99s/' /etc/swanctl/conf.d/menagerie.conf")
    on(edge, "nft flush chain inet menagerie_vpn forward")
    on(
        edge,
        "vtysh -c 'configure terminal' -c 'router bgp 65010' -c 'no timers bgp' -c 'neighbor 10.1.1.1 remote-as 65099'",
    )
    look = "cat /etc/swanctl/conf.d/menagerie.conf; nft list table inet menagerie_vpn; vtysh -c 'show running-config'"
    drifted = on(edge, look)
    dry_run = configured(inventory, key, check=True)
    diffs = " ".join(dry_run.diffs.values())
    assert dry_run.changed == 2
    assert "dpd_delay = 99s" in diffs
    assert on(edge, look) == drifted
    assert configured(inventory, key).changed == 2
    assert "10.1.1.1" not in on(edge, look)
    assert "99s" not in on(edge, look)
    assert configured(inventory, key, check=True).changed == 0
    assert on(edge, f"systemctl show --value -p ActiveEnterTimestampMonotonic {' '.join(UNITS)}") == since


def test_after_a_reboot_rules_and_interfaces_exist_before_any_tunnel_and_nothing_is_left_to_do(
    edge: str, inventory: Inventory, key: Path
) -> None:
    before = on(edge, "cat /proc/sys/kernel/random/boot_id")
    hosts.run(edge, ["systemctl", "reboot"])

    def missing() -> str:
        try:
            now = hosts.run(edge, ["cat", "/proc/sys/kernel/random/boot_id"]).stdout
            active = hosts.run(edge, ["systemctl", "is-active", *UNITS]).stdout.split()
        except LabError:  # it may be off at any moment of this
            return "off"
        return "" if now and now != before and active == ["active"] * len(UNITS) else f"{active}"

    wait_until(missing, 90, print)
    wait_until(tunnel_missing, 60, print)
    started = [int(on(edge, f"systemctl show --value -p ActiveEnterTimestampMonotonic {unit}")) for unit in UNITS[:3]]
    assert started[2] == max(started)
    assert configured(inventory, key).changed == 0
