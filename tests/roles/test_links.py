"""menagerie-links sets and identifies ports of several cards. tests/roles/links_hosts.py has the sources of their formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from menagerie_links import ports
from menagerie_links import settings as settings_of

from tests.roles.links_hosts import CARDS, MLX, Host, connectx, e810, is_mutation, thor


def changed(result: Any) -> list[str]:
    assert result.wrong == ()
    return list(result.changed)


def wrong(result: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.text) for finding in result.wrong]


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_link_is_set_once_and_then_left_alone(tmp_path: Path, card: Any) -> None:
    port = card()
    host = Host(tmp_path, port)
    link = {"pci": port.pci, "mtu": 9000, "rx_ring": 2016, "tx_ring": 992, "offloads": {"gro": False}}
    if port.driver == "mlx5_core":
        link |= {"rx_ring": 4096, "tx_ring": 2048}
    assert changed(settings_of.bring(host.edge, port.name, link, check=True))[0] == "mtu: 1500 -> 9000"
    assert [call for call in host.calls if is_mutation(call)] == []
    done = changed(settings_of.bring(host.edge, port.name, link, check=False))
    assert done[1:] == [
        f"rx_ring: {card().rings['RX']} -> {link['rx_ring']}",
        f"tx_ring: {card().rings['TX']} -> {link['tx_ring']}",
        "gro: on -> off",
    ]
    assert (port.mtu, port.rings["RX"], port.features["generic-receive-offload"][0]) == (9000, link["rx_ring"], False)
    host.calls.clear()
    assert changed(settings_of.bring(host.edge, port.name, link, check=False)) == []
    assert [call for call in host.calls if is_mutation(call)] == []


def test_only_what_differs_is_set(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(mtu=9000))
    link = {**MLX, "rx_ring": 1024, "tx_ring": 4096, "offloads": {"tso": True, "rx-gro-hw": True}}
    assert len(changed(settings_of.bring(host.edge, "ens1f0np0", link, check=False))) == 2
    assert [call for call in host.calls if is_mutation(call)] == [
        ("ethtool", "-G", "ens1f0np0", "tx", "4096"),
        ("ethtool", "-K", "ens1f0np0", "rx-gro-hw", "on"),
    ]


@pytest.mark.parametrize(
    ("card", "link", "text"),
    [
        (connectx, {"rx_ring": 16384}, "rx_ring: 1024 -> 16384: its largest is 8192"),
        (thor, {"tx_ring": 4096}, "tx_ring: 511 -> 4096: its largest is 2047"),
        (e810, {"offloads": {"lro": True}}, "lro: off -> on: it is fixed"),
        (e810, {"offloads": {"rx-gro-hw": True}}, "rx-gro-hw: off -> on: it is fixed"),
        (
            thor,
            {"offloads": {"hw-tc-ofload": True}},
            "hw-tc-ofload: unknown -> on: no such feature; it has hw-tc-offload",
        ),
        (thor, {"mtu": 9600}, "mtu: 1500 -> 9600: this card takes 68 to 9500"),
    ],
)
def test_a_setting_that_a_card_can_not_have_is_refused_without_changes(
    tmp_path: Path, card: Any, link: Any, text: str
) -> None:
    port = card()
    host = Host(tmp_path, port)
    for check in (True, False):
        result = settings_of.bring(host.edge, port.name, {"pci": port.pci, "mtu": 1500, **link}, check=check)
        assert wrong(result) == [("LNK-007", f"{port.name} ({port.driver}): {text}")]
    assert [call for call in host.calls if is_mutation(call)] == []


def test_a_ring_that_the_driver_rounds_is_refused_with_the_rounded_size(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(mtu=9000))
    result = settings_of.bring(host.edge, "ens1f0np0", {**MLX, "rx_ring": 3000}, check=False)
    text = "ens1f0np0 (mlx5_core): rx_ring: 1024 -> 3000: the card rounds it to 4096; write rx_ring: 4096"
    assert wrong(result) == [("LNK-007", text)]


def test_a_setting_that_does_not_take_effect_is_reported_with_the_tools_message(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(ignores={"mtu", "rx-gro-hw"}))
    result = settings_of.bring(host.edge, "ens1f0np0", {**MLX, "offloads": {"rx-gro-hw": True}}, check=False)
    texts = [text for _, text in wrong(result)]
    assert texts[0].startswith("ens1f0np0 (mlx5_core): mtu: 1500 -> 9000: it still is 1500")
    assert texts[1].endswith("rx-gro-hw: off [requested on] Could not change any device features")
    assert result.changed == ()


def test_a_driver_without_rings_and_a_member_of_a_bond_say_so(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(has_rings=False))
    host.put("/sys/class/net/ens1f0np0/bonding_slave/perm_hwaddr", "b8:59:9f:aa:bb:01")
    (tmp_path / "sys/class/net/bond0").mkdir()
    (tmp_path / "sys/class/net/ens1f0np0/master").symlink_to(tmp_path / "sys/class/net/bond0")
    findings = wrong(settings_of.bring(host.edge, "ens1f0np0", {**MLX, "rx_ring": 2048}, check=False))
    assert [text.partition("): ")[2] for _, text in findings] == [
        "mtu: 1500 -> 9000: it is in the bond bond0, which sets it; set the bond's",
        "rx_ring: none -> 2048: mlx5_core has no ring to set",
    ]


def test_a_link_with_another_name_is_set_and_renamed_at_the_next_boot(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(name="eth3"))
    result = settings_of.bring(host.edge, "node0", MLX, check=False)
    assert changed(result) == ["mtu: 1500 -> 9000"]
    assert (result.reboot, result.notes) == (True, ("node0 is called eth3 until this host reboots",))
    assert not any("name" in call for call in host.calls)


# --- cards ------------------------------------------------------------------------------------------------------------


def test_a_port_is_found_by_its_cards_permanent_address_even_in_a_bond(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(), e810())
    host.put("/sys/class/net/ens2f0/bonding_slave/perm_hwaddr", "b4:96:91:aa:bb:02")
    host.put("/sys/class/net/ens2f0/address", "b8:59:9f:aa:bb:01")
    assert ports.find(host.edge, "node1", {"mac": "b4:96:91:aa:bb:02"}).name == "ens2f0"


def test_representors_of_a_port_are_not_the_port(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(name="zz0"))
    for name, port in (("aa0", "pf0vf0"), ("aa1", "pf0vf1"), ("zz0", "p0")):
        host.put(f"/sys/class/net/{name}/phys_port_name", port)
        host.put(f"/sys/devices/pci0000:17/0000:1a:00.0/net/{name}/ifindex", 9)
    assert ports.find(host.edge, "node0", MLX).name == "zz0"


@pytest.mark.parametrize(
    ("link", "code", "text"),
    [
        (
            {"mac": "02:00:00:00:00:09"},
            "INV-003",
            "no card of this host has 02:00:00:00:00:09; there are: ens1f0np0 b8:59:9f:aa:bb:01",
        ),
        (
            {"pci": "0000:1a:00.0", "mac": "02:00:00:00:00:09"},
            "INV-003",
            "the card at 0000:1a:00.0 has b8:59:9f:aa:bb:01, the hosts file says 02:00:00:00:00:09",
        ),
        ({"pci": "0000:99:00.0"}, "LNK-007", "the device 0000:99:00.0 is not in this host"),
    ],
)
def test_a_card_other_than_the_one_in_the_hosts_file_is_not_set(tmp_path: Path, link, code: str, text: str) -> None:
    host = Host(tmp_path, connectx())
    assert wrong(settings_of.bring(host.edge, "ens1f0np0", {"mtu": 9000, **link}, check=False)) == [(code, text)]
    assert [call for call in host.calls if is_mutation(call)] == []


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({"address": "10.8.0.17"}, "", ""),
        ({"address": "10.8.0.17", "mac": "b8:59:9f:aa:bb:01"}, "", ""),
        (
            {"address": "10.8.0.17", "mac": "b8:59:9f:aa:bb:ff"},
            "INV-003",
            "10.8.0.17 is on a card with b8:59:9f:aa:bb:01, the hosts file says b8:59:9f:aa:bb:ff",
        ),
        ({"address": "10.8.0.18"}, "INV-004", "this host doesn't have the address 10.8.0.18; it has 10.8.0.17"),
    ],
)
def test_a_host_with_another_address_or_card_is_another_host(tmp_path: Path, given, code: str, text: str) -> None:
    host = Host(tmp_path, connectx(), e810(), ens1f0np0="10.8.0.17")
    findings = ports.identity(host.edge, given)
    assert [(finding.code, finding.text) for finding in findings] == ([(code, text)] if code else [])


def test_the_cards_under_a_bond_belong_to_the_host(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(), bond0="10.8.0.17")
    host.put("/sys/class/net/bond0/address", "02:00:00:00:00:01")
    (tmp_path / "sys/class/net/bond0/lower_ens1f0np0").mkdir()
    assert ports.identity(host.edge, {"address": "10.8.0.17", "mac": "b8:59:9f:aa:bb:01"}) == []
