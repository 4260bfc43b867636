"""menagerie-roce sets ports of several cards. tests/roles/roce_cards.py has the sources of their formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from menagerie_roce.__main__ import bring
from menagerie_roce.desired import desired, smaller_mtu
from menagerie_roce.qos import parse_mlnx_qos
from menagerie_roce.settings import number

from cluster.roce import MTUS, Device, Fabric, mtu_over
from tests.roles import roce_cards as cards
from tests.roles.roce_cards import CARDS, CX5, Card
from tests.roles.roce_hosts import INTERFACE, PCI, Host, build, host_settings

Made = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path) -> Made:
    """Return a function that builds a host with one port of a card."""
    return lambda card=CX5, **changes: build(tmp_path / "root", replace(card, **changes))


def is_mutation(call: tuple[str, ...]) -> bool:
    reads = (call[0] == "mlnx_qos" and len(call) == 3) or call[1] == "-a" or "show" in call or "--get" in call
    return not reads


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_port_with_factory_settings_is_set_for_the_fabric_and_stays_so(host: Made, card: Card) -> None:
    port_host = host(card)
    first = bring(port_host.edge, host_settings(), "rail-0", check=False)
    assert first.wrong == ()
    assert (port_host.qos.pause, port_host.qos.dcbx if card.prints_dcbx else "OS") == (("off", "off"), "OS")
    assert (port_host.qos.mapped[26], port_host.qos.mapped[48], port_host.qos.pfc) == (3, 6, [0, 0, 0, 1, 0, 0, 0, 0])
    assert port_host.text(f"/sys/kernel/config/rdma_cm/{card.rdma}/ports/1/default_roce_tos") == "106"
    port_host.calls.clear()
    second = bring(port_host.edge, host_settings(), "rail-0", check=False)
    assert (second.changed, second.wrong) == ((), ())
    assert [call for call in port_host.calls if is_mutation(call)] == []


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("set_before", [False, True])
def test_check_reports_what_a_run_would_change_and_changes_nothing(host: Made, card: Card, set_before: bool) -> None:
    port_host = host(card)
    if set_before:
        bring(port_host.edge, host_settings(), "rail-0", check=False)
        port_host.qos.pfc = [0] * 8
    before, state = port_host.files(), repr(port_host.qos)
    port_host.calls.clear()
    checked = bring(port_host.edge, host_settings(), "rail-0", check=True)
    assert (port_host.files(), repr(port_host.qos)) == (before, state)
    assert [call for call in port_host.calls if is_mutation(call)] == []
    if set_before:
        assert checked.changed == ("PFC: 0,0,0,0,0,0,0,0 -> 0,0,0,1,0,0,0,0",)
    assert checked.changed == bring(port_host.edge, host_settings(), "rail-0", check=False).changed


def test_the_additional_settings_of_ofeds_driver_are_set_too(host: Made) -> None:
    port_host = host(CX5)
    result = bring(port_host.edge, host_settings(cnp_dscp=46, cnp_priority=5), "rail-0", check=False)
    assert (result.wrong, result.notes) == ((), ())
    net = f"/sys/class/net/{INTERFACE}"
    assert port_host.text("/sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "Global tclass=106"
    enabled = {side: [port_host.text(f"{net}/ecn/roce_{side}/enable/{n}") for n in range(8)] for side in ("np", "rp")}
    assert enabled == {"np": list("00010000"), "rp": list("00010000")}
    assert [port_host.text(f"{net}/ecn/roce_np/{name}") for name in ("cnp_dscp", "cnp_802p_prio")] == ["46", "5"]
    assert port_host.qos.accel == 0


def test_linuxs_driver_gets_the_mark_of_notifications_through_debugfs(host: Made) -> None:
    port_host = host(cards.CX6_DX_IN_LINUX)
    result = bring(port_host.edge, host_settings(), "rail-0", check=False)
    folder = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
    assert [port_host.text(f"{folder}/{name}") for name in ("np_cnp_dscp", "np_cnp_prio")] == ["48", "6"]
    assert [note.split(" is left")[0] for note in result.notes] == [
        "ECN, receiving", "ECN, sending", "traffic class", "recovery from loss",
    ]  # fmt: skip


def test_broadcoms_own_driver_is_set_through_configfs(host: Made) -> None:
    port_host = host(cards.THOR)
    assert bring(port_host.edge, host_settings(), "rail-0", check=False).wrong == ()
    folder = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
    names = ("ecn_marking", "ecn_enable", "cnp_dscp", "cnp_prio", "apply")
    assert [port_host.text(f"{folder}/{name}") for name in names] == ["0x1", "0x1", "0x30", "0x6", "0x1"]


def test_a_lossy_fabric_has_no_pfc_and_cards_that_retransmit(host: Made) -> None:
    port_host = host(CX5)
    port_host.qos.accel, port_host.qos.pfc = 0, [0, 0, 0, 1, 0, 0, 0, 0]
    assert bring(port_host.edge, host_settings(fabric="lossy"), "rail-0", check=False).wrong == ()
    assert (port_host.qos.pfc, port_host.qos.accel, port_host.qos.trust) == ([0] * 8, 1, "dscp")


def test_a_fabric_with_other_numbers_is_set_to_them(host: Made) -> None:
    port_host = host(CX5)
    assert bring(port_host.edge, host_settings(priority=5, dscp=40), "rail-0", check=False).wrong == ()
    assert (port_host.qos.mapped[40], port_host.qos.pfc) == (5, [0, 0, 0, 0, 0, 1, 0, 0])
    assert port_host.text("/sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "Global tclass=162"


def test_a_port_is_found_by_its_pci_address(host: Made) -> None:
    result = bring(host(CX5).edge, host_settings(device=Device(pci=PCI)), "rail-0", check=False)
    assert (result.port, result.wrong) == ("ens1f0np0 (mlx5_0, ConnectX-5 (15b3:1017))", ())


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (
            cards.X710,
            "ens1f0np0: Intel X710 (8086:1572) has no RDMA. RoCE v2 needs ConnectX-4 or newer, or another listed NIC",
        ),
        (cards.E810, "ens1f0np0: Intel E810-C (8086:1592) is not listed here. RoCE v2 needs ConnectX-4 or newer"),
        (cards.CX3, "ens1f0np0: ConnectX-3 (15b3:1003) can't trust DSCP. RoCE v2 needs ConnectX-4 or newer"),
        (replace(CX5, rdma=""), "ConnectX-5 (15b3:1017) shows no RDMA device; load its driver: modprobe mlx5_ib"),
        (replace(cards.THOR, rdma=""), "Broadcom BCM57508 (Thor) (14e4:1750) shows no RDMA device; load its driver"),
        (replace(CX5, rdma="mlx5_bond_0"), "mlx5_bond_0 joins the ports of a bond; take it out of the bond"),
        (replace(CX5, link_layer="InfiniBand"), "mlx5_0 port 1 is InfiniBand, not Ethernet; set its LINK_TYPE"),
        (replace(CX5, tools=()), "neither dcb (package iproute2) nor mlnx_qos (mlnx-tools) is here"),
    ],
)
def test_ports_that_can_not_carry_roce_are_refused_by_name(host: Made, card: Card, message: str) -> None:
    port_host = host(card)
    (wrong,) = bring(port_host.edge, host_settings(), "rail-0", check=False).wrong
    assert message in wrong
    assert [call for call in port_host.calls if is_mutation(call)] == []


def test_bonds_and_interfaces_that_are_no_ports_are_refused(host: Made) -> None:
    port_host = host(CX5)
    net = f"/sys/class/net/{INTERFACE}"
    port_host.put("/sys/class/net/bond0/bonding/mode", "802.3ad 4")
    port_host.put("/sys/class/net/vlan7/mtu", 9000)
    refusals = {
        "bond0": "bond0: it is a bond; name its ports, each a rail of its own",
        "vlan7": "vlan7: it is no port of a card; name the port under it",
        "ens9": "ens9: this host has no such interface",
    }
    for name, message in refusals.items():
        assert bring(port_host.edge, host_settings(device=Device(interface=name)), "rail-0", check=False).wrong == (
            message,
        )
    absent = bring(port_host.edge, host_settings(device=Device(pci="0000:99:00.0")), "rail-0", check=False)
    assert absent.wrong == ("0000:99:00.0: the device is not in this host",)
    port_host.link(f"{net}/device/physfn", "/sys/devices/pci0000:17/0000:1a:00.1")
    (wrong,) = bring(port_host.edge, host_settings(), "rail-0", check=False).wrong
    assert wrong == "ens1f0np0: it is a virtual function; its port's settings belong to 0000:1a:00.1"
    port_host.put(f"{net}/bonding_slave/state", "active")
    port_host.link(f"{net}/master", "/sys/class/net/bond0")
    (wrong,) = bring(port_host.edge, host_settings(), "rail-0", check=False).wrong
    assert wrong.startswith("ens1f0np0: it is in the bond bond0; take it out of the bond")


@pytest.mark.parametrize(
    ("changes", "fabric", "message"),
    [
        (
            {"mtu": 1500}, {},
            "ens1f0np0: roce.mtu 4096 needs link MTU 4192 or more on every hop; the port has 1500 (RDMA would drop to 1024)",
        ),
        ({"mtu": 9216}, {}, "ens1f0np0: link MTU is 9216, wanted 4192 to 9000"),
        ({"gbit_s": 50}, {"gbit_s": 100}, "ens1f0np0: speed in Gbit/s is 50, wanted 100"),
        ({"ignores_pfc": True}, {}, "ens1f0np0: PFC is 0,0,0,0,0,0,0,0, wanted 0,0,0,1,0,0,0,0"),
        ({"keeps_dcbx": True}, {}, "ens1f0np0: DCBX is firmware, wanted os"),
        ({"has_rdma_cm": False}, {}, "ens1f0np0: ToS of RDMA-CM is not set, wanted 106: load the module: modprobe rdma_cm"),
    ],
)  # fmt: skip
def test_a_setting_that_reads_back_wrong_is_reported(
    host: Made, changes: dict[str, object], fabric: dict[str, object], message: str
) -> None:
    port_host = host(CX5, **changes)
    result = bring(port_host.edge, host_settings(**fabric), "rail-0", check=False)
    assert result.wrong == (message,)
    assert message.split(": ")[1].split(" is ")[0] not in " ".join(result.changed)


def test_firmware_that_can_not_trust_dscp_is_reported_with_the_tools_message(host: Made) -> None:
    first, *_ = bring(host(CX5, can_trust=False).edge, host_settings(), "rail-0", check=False).wrong
    assert first == (
        "ens1f0np0: trust is none, wanted dscp: mlnx_qos -i ens1f0np0 --trust dscp: "
        "Priority trust state is not supported on your system"
    )


@pytest.mark.parametrize("changes", [{"has_pause": False}, {"up": False}])
def test_a_harmless_missing_setting_is_only_noted(host: Made, changes: dict[str, bool]) -> None:
    result = bring(host(CX5, **changes).edge, host_settings(gbit_s=100), "rail-0", check=False)
    assert result.wrong == ()
    assert len(result.notes) == 1


def test_host_and_model_choose_the_same_mtu() -> None:
    links = [*range(300, 9217, 7), *(mtu + delta for mtu in MTUS for delta in (95, 96))]
    assert [smaller_mtu(link) for link in links] == [mtu_over(link) for link in links]


def test_all_lines_of_one_priority_count() -> None:
    """On a port with DSCP 30 and 48 mapped by hand ("RoCE over Switch" guides), priority 6 has two lines."""
    text = "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:6 dscp:30,55,54,53,52,51,50,49,\n\tprio:6 dscp:48,\n"
    qos = parse_mlnx_qos(text)
    assert {dscp for dscp, priority in qos.mapped.items() if priority == "6"} == {30, *range(48, 56)}


def test_traffic_class_is_read_from_its_global_value() -> None:
    assert number("Global tclass=106\n") == "106"
    assert number("Global tclass=106\ntclass=32 src_ip=1.1.1.2\n") == "106"
    assert [number(text) for text in ("", None, "0x30")] == ["not set", "not set", "48"]


def test_the_fabrics_values_match_the_programs() -> None:
    for fabric in Fabric:
        values = desired(host_settings(fabric=str(fabric)), "mlx5_core")
        assert values["PFC"].count("1") == (fabric is Fabric.LOSSLESS)
