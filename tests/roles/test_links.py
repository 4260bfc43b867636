"""menagerie-links on hosts with several cards. tests/roles/links_hosts.py says where their shapes are from."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.roles.links_hosts import CARDS, RECORDED, Host, connectx, e810, is_mutation, module, thor

settings_of = module("links_settings")
ports, cables, program = module("links_ports"), module("links_cables"), module("menagerie_links")
MLX = {"pci": "0000:1a:00.0", "mtu": 9000}


def changed(result: Any) -> list[str]:
    assert result.wrong == ()
    return list(result.changed)


def wrong(result: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.text) for finding in result.wrong]


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_link_is_set_once_and_then_not_touched(tmp_path: Path, card: Any) -> None:
    made = card()
    host = Host(tmp_path, made)
    link = {"pci": made.pci, "mtu": 9000, "rx_ring": 2016, "tx_ring": 992, "offloads": {"gro": False}}
    if made.driver == "mlx5_core":
        link |= {"rx_ring": 4096, "tx_ring": 2048}
    assert changed(settings_of.bring(host.edge, made.name, link, check=True))[0] == "mtu: 1500 -> 9000"
    assert [call for call in host.calls if is_mutation(call)] == []
    done = changed(settings_of.bring(host.edge, made.name, link, check=False))
    assert done[1:] == [
        f"rx_ring: {card().rings['RX']} -> {link['rx_ring']}",
        f"tx_ring: {card().rings['TX']} -> {link['tx_ring']}",
        "gro: on -> off",
    ]
    assert (made.mtu, made.rings["RX"], made.features["generic-receive-offload"][0]) == (9000, link["rx_ring"], False)
    host.calls.clear()
    assert changed(settings_of.bring(host.edge, made.name, link, check=False)) == []
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
            "hw-tc-ofload: unknown -> on: no feature of it; it has hw-tc-offload",
        ),
        (thor, {"mtu": 9600}, "mtu: 1500 -> 9600: this card takes 68 to 9500"),
    ],
)
def test_what_a_card_can_not_have_is_refused_untouched(tmp_path: Path, card: Any, link: Any, text: str) -> None:
    made = card()
    host = Host(tmp_path, made)
    for check in (True, False):
        result = settings_of.bring(host.edge, made.name, {"pci": made.pci, "mtu": 1500, **link}, check=check)
        assert wrong(result) == [("LNK-007", f"{made.name} ({made.driver}): {text}")]
    assert [call for call in host.calls if is_mutation(call)] == []


def test_a_ring_that_the_driver_rounds_is_refused_with_the_size_that_it_made(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(mtu=9000))
    result = settings_of.bring(host.edge, "ens1f0np0", {**MLX, "rx_ring": 3000}, check=False)
    text = "ens1f0np0 (mlx5_core): rx_ring: 1024 -> 3000: the card made 4096 of it; write rx_ring: 4096"
    assert wrong(result) == [("LNK-007", text)]


def test_a_setting_that_does_not_take_is_told_with_the_tool_s_words(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(ignores={"mtu", "rx-gro-hw"}))
    result = settings_of.bring(host.edge, "ens1f0np0", {**MLX, "offloads": {"rx-gro-hw": True}}, check=False)
    told = [text for _, text in wrong(result)]
    assert told[0].startswith("ens1f0np0 (mlx5_core): mtu: 1500 -> 9000: it still is 1500")
    assert told[1].endswith("rx-gro-hw: off [requested on] Could not change any device features")
    assert result.changed == ()


def test_a_driver_without_rings_and_a_member_of_a_bond_say_so(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(has_rings=False))
    host.put("/sys/class/net/ens1f0np0/bonding_slave/perm_hwaddr", "b8:59:9f:aa:bb:01")
    (tmp_path / "sys/class/net/bond0").mkdir()
    (tmp_path / "sys/class/net/ens1f0np0/master").symlink_to(tmp_path / "sys/class/net/bond0")
    told = wrong(settings_of.bring(host.edge, "ens1f0np0", {**MLX, "rx_ring": 2048}, check=False))
    assert [text.partition("): ")[2] for _, text in told] == [
        "mtu: 1500 -> 9000: it is in the bond bond0, which sets it; set the bond's",
        "rx_ring: none -> 2048: mlx5_core has no ring to set",
    ]


def test_a_link_that_has_another_name_is_set_and_waits_for_a_boot(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(name="eth3"))
    result = settings_of.bring(host.edge, "node0", MLX, check=False)
    assert changed(result) == ["mtu: 1500 -> 9000"]
    assert (result.reboot, result.notes) == (True, ("node0 is called eth3 until this host is booted again",))
    assert not any("name" in call for call in host.calls)


# --- cards ------------------------------------------------------------------------------------------------------------


def test_a_port_is_found_by_its_card_s_own_address_in_a_bond_too(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(), e810())
    host.put("/sys/class/net/ens2f0/bonding_slave/perm_hwaddr", "b4:96:91:aa:bb:02")
    host.put("/sys/class/net/ens2f0/address", "b8:59:9f:aa:bb:01")
    assert ports.find(host.edge, "node1", {"mac": "b4:96:91:aa:bb:02"}).name == "ens2f0"


def test_representors_beside_a_port_are_not_the_port(tmp_path: Path) -> None:
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
def test_a_card_that_is_not_the_one_of_the_hosts_file_is_not_set(tmp_path: Path, link, code: str, text: str) -> None:
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
    found = ports.identity(host.edge, given)
    assert [(each.code, each.text) for each in found] == ([(code, text)] if code else [])


def test_the_cards_under_a_bond_are_the_host_s(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx(), bond0="10.8.0.17")
    host.put("/sys/class/net/bond0/address", "02:00:00:00:00:01")
    (tmp_path / "sys/class/net/bond0/lower_ens1f0np0").mkdir()
    assert ports.identity(host.edge, {"address": "10.8.0.17", "mac": "b8:59:9f:aa:bb:01"}) == []


# --- cables -----------------------------------------------------------------------------------------------------------


def end(host: str, link: str, switch: str, port: str) -> Any:
    return cables.End(host, link, switch, port)


@pytest.mark.parametrize(
    ("interface", "switch", "port", "leads"),
    [
        ("ens0f0", "leaf-1", "swp17", True),
        ("ens0f0", "leaf-1", "17", True),
        ("ens0f0", "LEAF-1", "17", True),
        ("ens0f0", "leaf-1", "18", False),
        ("ens0f0", "leaf-10", "17", False),
        ("ens1f0", "leaf-2", "Ethernet64", True),
        ("ens1f0", "leaf-2.sjc1.example.net", "Eth17(Port17)", True),
        ("ens1f0", "leaf-2", "17", True),
        ("ens1f0", "leaf-2", "Ethernet6", False),
        ("ens2f0", "leaf-3", "Ethernet1/17", True),
        ("ens2f0", "leaf-3", "et1/17", True),
        ("ens2f0", "leaf-3", "17", True),
        ("ens2f0", "leaf-3", "Ethernet1/1", False),
    ],
)
def test_what_switches_say_is_compared_as_people_write_it(interface: str, switch: str, port: str, leads: bool) -> None:
    (heard,) = cables.parse_lldp(RECORDED)[interface]
    assert cables.leads_to(heard, end("gpu-017", interface, switch, port)) is leads


def told(tmp_path: Path, lldp: Any, *cards: Any, **links: Any) -> list[str]:
    host = Host(tmp_path, *cards, lldp=lldp)
    settings = {"host": "gpu-017", "links": links}
    report = program.check_cables(host.edge, settings, list(links), 0)
    return [program.line("gpu-017", finding) for finding in report.findings]


def test_cables_as_in_the_hosts_file_are_no_finding(tmp_path: Path) -> None:
    one = {**MLX, "switch": "leaf-1", "port": 17}
    assert told(tmp_path, RECORDED, connectx(name="ens0f0"), ens0f0=one) == []


def test_two_cables_of_a_host_that_are_swapped_are_told_so(tmp_path: Path) -> None:
    one = {"pci": "0000:1a:00.0", "switch": "leaf-2", "port": "Ethernet64"}
    other = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    assert told(tmp_path, RECORDED, connectx(name="ens0f0"), e810(name="ens1f0"), rail0=one, rail1=other) == [
        "gpu-017 rail0: leaf-1 swp17, the hosts file says leaf-2 Ethernet64; looks swapped with rail1 [LNK-005]",
        (
            "gpu-017 rail1: leaf-2.sjc1.example.net Ethernet64, the hosts file says leaf-1 17; looks swapped with rail0 "
            "[LNK-005]"
        ),
    ]


def test_a_cable_in_another_link_s_place_is_told_so(tmp_path: Path) -> None:
    one = {"pci": "0000:1a:00.0", "switch": "leaf-9", "port": 1}
    other = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    lines = told(tmp_path, RECORDED, connectx(name="ens0f0"), e810(name="ens7f0", carrier=0), rail0=one, rail1=other)
    assert lines == [
        "gpu-017 rail0: leaf-1 swp17, the hosts file says leaf-9 1; that is where rail1 should be [LNK-005]",
        "gpu-017 rail1: no link: no cable, or a port that is off; the hosts file says leaf-1 17 [LNK-005]",
    ]


def test_silence_names_firmware_that_may_swallow_it(tmp_path: Path) -> None:
    one = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    assert told(tmp_path, {"lldp": [{}]}, e810(), rail0=one) == [
        (
            "gpu-017 rail0: nothing is heard from leaf-1 17; ice's firmware may take it: ethtool --set-priv-flags ens2f0 "
            "fw-lldp-agent off [LNK-005]"
        )
    ]


def test_a_daemon_that_does_not_run_is_one_finding(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx())
    host.edge.run = lambda *words: (1, "unable to connect to socket\n") if words[0] == "lldpctl" else host.run(words)
    settings = {"host": "gpu-017", "links": {"rail0": {**MLX, "switch": "leaf-1", "port": 17}}}
    report = program.check_cables(host.edge, settings, ["rail0"], 0)
    assert [each.text for each in report.findings] == [
        "lldpctl: unable to connect to socket; is lldpd.service running?"
    ]


# --- the program ------------------------------------------------------------------------------------------------------


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """given(host, **links): the host with its settings placed."""

    def placed(host: Host, **links: Any) -> Any:
        settings = {"host": "gpu-017", "address": "10.8.0.17", "links": links, "paths": []}
        host.put("/etc/menagerie/links.json", json.dumps(settings))
        return host.edge

    return placed


def test_exit_codes_say_what_a_run_would_do(tmp_path: Path, given: Any, capsys: Any) -> None:
    edge = given(Host(tmp_path, connectx(), ens1f0np0="10.8.0.17"), ens1f0np0=MLX)
    assert program.main(["check"], edge) == 1
    assert (
        "gpu-017 ens1f0np0: ens1f0np0 (mlx5_core): mtu: 1500 -> 9000: not as set [LNK-007]" in capsys.readouterr().err
    )
    assert [program.main(words, edge) for words in (["apply", "--check"], ["apply"], ["apply", "--check"])] == [2, 0, 0]
    assert program.main(["check"], edge) == 0
    assert program.main(["apply", "nosuch"], edge) == 1


def test_the_document_holds_findings_ways_and_who_was_heard(tmp_path: Path, given: Any, capsys: Any) -> None:
    host = Host(tmp_path, connectx(name="ens0f0", mtu=9000), lldp=RECORDED, ens0f0="10.8.0.18")
    edge = given(host, ens0f0={**MLX, "switch": "leaf-1", "port": 18})
    assert program.main(["check", "--json"], edge) == 1
    document = json.loads(capsys.readouterr().out)
    assert [finding["code"] for finding in document["findings"]] == ["INV-004", "LNK-005"]
    assert document["heard"] == {"ens0f0": [{"switch": "leaf-1", "ports": ["swp17", "swp17"]}]}


def test_another_machine_that_is_not_set_yet_may_wait(tmp_path: Path, given: Any, monkeypatch: Any) -> None:
    edge = given(Host(tmp_path, connectx(mtu=9000), ens1f0np0="10.8.0.17"), ens1f0np0=MLX)
    settings = json.loads(edge.read("/etc/menagerie/links.json"))
    way = {"to": "gpu-018 in the same rack", "address": "10.8.0.18", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}
    monkeypatch.setattr(program.ways, "look", lambda way, router: program.ways.Found(1500))
    codes = []
    for more in ({"host": "gpu-018"}, {}):
        (tmp_path / "etc/menagerie/links.json").write_text(json.dumps({**settings, "paths": [{**way, **more}]}))
        codes += [program.main(["check", *words], edge) for words in ([], ["--others-may-wait"])]
    assert codes == [1, 0, 1, 1]


def test_a_port_that_comes_back_is_set_again(tmp_path: Path, given: Any) -> None:
    card = connectx()
    host = Host(tmp_path, card)
    settings = json.loads(given(host, ens1f0np0=MLX).read("/etc/menagerie/links.json"))
    seen: list[int] = []

    def events() -> Any:
        host.calls.clear()
        yield None
        seen.append(len(host.calls))
        host.put("/sys/class/net/ens1f0np0/mtu", 1500)
        host.put("/sys/class/net/ens1f0np0/carrier_changes", 4)
        yield None
        seen.append(int(host.edge.read("/sys/class/net/ens1f0np0/mtu")))

    assert program.watch(host.edge, settings, events(), lambda: seen.append(-1)) == 0
    assert seen == [-1, 0, 9000]


def test_the_kernel_tells_of_changes_of_links() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may make links")
    events, name = program.link_events(), f"mgl{os.getpid() % 10000}"
    threading.Timer(0.3, os.system, [f"ip link add {name} type veth; ip link del {name}"]).start()
    assert next(events) is None
