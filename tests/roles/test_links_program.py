"""Findings of menagerie-links about cables, its exit codes, and when it sets a port again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from menagerie_links import __main__ as program
from menagerie_links import cables, check

from tests.roles.links_hosts import MLX, RECORDED, Host, connectx, e810

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
def test_switch_and_port_names_match_in_every_usual_notation(
    interface: str, switch: str, port: str, leads: bool
) -> None:
    (heard,) = cables.parse_lldp(RECORDED)[interface]
    assert cables.leads_to(heard, end("gpu-017", interface, switch, port)) is leads


def cable_lines(tmp_path: Path, lldp: Any, *cards: Any, **links: Any) -> list[str]:
    host = Host(tmp_path, *cards, lldp=lldp)
    settings = {"host": "gpu-017", "links": links}
    report = check.check_cables(host.edge, settings, list(links), 0)
    return [program.line("gpu-017", finding) for finding in report.findings]


def test_cables_that_match_the_hosts_file_are_no_finding(tmp_path: Path) -> None:
    one = {**MLX, "switch": "leaf-1", "port": 17}
    assert cable_lines(tmp_path, RECORDED, connectx(name="ens0f0"), ens0f0=one) == []


def test_two_swapped_cables_of_a_host_are_reported_as_swapped(tmp_path: Path) -> None:
    one = {"pci": "0000:1a:00.0", "switch": "leaf-2", "port": "Ethernet64"}
    other = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    assert cable_lines(tmp_path, RECORDED, connectx(name="ens0f0"), e810(name="ens1f0"), rail0=one, rail1=other) == [
        "gpu-017 rail0: leaf-1 swp17, the hosts file says leaf-2 Ethernet64; looks swapped with rail1 [LNK-005]",
        (
            "gpu-017 rail1: leaf-2.sjc1.example.net Ethernet64, the hosts file says leaf-1 17; looks swapped with rail0 "
            "[LNK-005]"
        ),
    ]


def test_a_cable_in_another_links_place_is_reported(tmp_path: Path) -> None:
    one = {"pci": "0000:1a:00.0", "switch": "leaf-9", "port": 1}
    other = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    lines = cable_lines(
        tmp_path, RECORDED, connectx(name="ens0f0"), e810(name="ens7f0", carrier=0), rail0=one, rail1=other
    )
    assert lines == [
        "gpu-017 rail0: leaf-1 swp17, the hosts file says leaf-9 1; that is where rail1 should be [LNK-005]",
        "gpu-017 rail1: no link: no cable, or a port that is off; the hosts file says leaf-1 17 [LNK-005]",
    ]


def test_silence_names_the_firmware_that_may_swallow_lldp(tmp_path: Path) -> None:
    one = {"pci": "0000:3b:00.0", "switch": "leaf-1", "port": 17}
    assert cable_lines(tmp_path, {"lldp": [{}]}, e810(), rail0=one) == [
        (
            "gpu-017 rail0: nothing is heard from leaf-1 17; ice's firmware may hide it: ethtool --set-priv-flags ens2f0 "
            "fw-lldp-agent off [LNK-005]"
        )
    ]


def test_a_stopped_daemon_is_one_finding(tmp_path: Path) -> None:
    host = Host(tmp_path, connectx())
    host.edge.run = lambda *words: (1, "unable to connect to socket\n") if words[0] == "lldpctl" else host.run(words)
    settings = {"host": "gpu-017", "links": {"rail0": {**MLX, "switch": "leaf-1", "port": 17}}}
    report = check.check_cables(host.edge, settings, ["rail0"], 0)
    assert [finding.text for finding in report.findings] == [
        "lldpctl: unable to connect to socket; is lldpd.service running?"
    ]


# --- the program ------------------------------------------------------------------------------------------------------


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """Return a function that places a host's settings, and returns its edge."""

    def placed(host: Host, **links: Any) -> Any:
        settings = {"host": "gpu-017", "address": "10.8.0.17", "links": links, "paths": []}
        host.put("/etc/menagerie/links.json", json.dumps(settings))
        return host.edge

    return placed


def test_exit_codes_show_what_a_run_would_do(tmp_path: Path, given: Any, capsys: Any) -> None:
    edge = given(Host(tmp_path, connectx(), ens1f0np0="10.8.0.17"), ens1f0np0=MLX)
    assert program.main(["check"], edge) == 1
    assert (
        "gpu-017 ens1f0np0: ens1f0np0 (mlx5_core): mtu: 1500 -> 9000: not as set [LNK-007]" in capsys.readouterr().err
    )
    assert [program.main(words, edge) for words in (["apply", "--check"], ["apply"], ["apply", "--check"])] == [2, 0, 0]
    assert program.main(["check"], edge) == 0
    assert program.main(["apply", "nosuch"], edge) == 1


def test_the_document_has_findings_paths_and_heard_switches(tmp_path: Path, given: Any, capsys: Any) -> None:
    host = Host(tmp_path, connectx(name="ens0f0", mtu=9000), lldp=RECORDED, ens0f0="10.8.0.18")
    edge = given(host, ens0f0={**MLX, "switch": "leaf-1", "port": 18})
    assert program.main(["check", "--json"], edge) == 1
    document = json.loads(capsys.readouterr().out)
    assert [finding["code"] for finding in document["findings"]] == ["INV-004", "LNK-005"]
    assert document["heard"] == {"ens0f0": [{"switch": "leaf-1", "ports": ["swp17", "swp17"]}]}


def test_another_machine_that_is_not_set_yet_can_wait(tmp_path: Path, given: Any, monkeypatch: Any) -> None:
    edge = given(Host(tmp_path, connectx(mtu=9000), ens1f0np0="10.8.0.17"), ens1f0np0=MLX)
    settings = json.loads(edge.read("/etc/menagerie/links.json"))
    path = {"to": "gpu-018 in the same rack", "address": "10.8.0.18", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}
    monkeypatch.setattr(check.ways, "look", lambda path, router: check.ways.PathResult(1500))
    codes = []
    for extra in ({"host": "gpu-018"}, {}):
        (tmp_path / "etc/menagerie/links.json").write_text(json.dumps({**settings, "paths": [{**path, **extra}]}))
        codes += [program.main(["check", *words], edge) for words in ([], ["--others-may-wait"])]
    assert codes == [1, 0, 1, 1]


def test_a_port_that_comes_back_is_set_again(tmp_path: Path, given: Any) -> None:
    card = connectx()
    host = Host(tmp_path, card)
    settings = json.loads(given(host, ens1f0np0=MLX).read("/etc/menagerie/links.json"))
    states: list[int] = []

    def events() -> Any:
        host.calls.clear()
        yield None
        states.append(len(host.calls))
        host.put("/sys/class/net/ens1f0np0/mtu", 1500)
        host.put("/sys/class/net/ens1f0np0/carrier_changes", 4)
        yield None
        states.append(int(host.edge.read("/sys/class/net/ens1f0np0/mtu")))

    assert program.watch(host.edge, settings, events(), lambda: states.append(-1)) == 0
    assert states == [-1, 0, 9000]


def test_a_port_with_another_name_requests_a_reboot_until_it_is_renamed(tmp_path: Path) -> None:
    request = tmp_path / "run" / "menagerie" / "reboot-required.d" / "links-node0"
    host = Host(tmp_path, connectx(name="eth3"))
    settings = {"host": "gpu-017", "links": {"node0": MLX}}
    program.apply_all(host.edge, settings, ["node0"], only_look=True, as_json=True)
    assert not request.exists()
    program.apply_all(host.edge, settings, ["node0"], only_look=False, as_json=True)
    assert request.read_text() == "eth3 must be renamed to node0\n"
    (tmp_path / "booted").mkdir()
    booted = Host(tmp_path / "booted", connectx(name="node0"))
    request.rename(tmp_path / "kept")
    folder = tmp_path / "booted" / "run" / "menagerie" / "reboot-required.d"
    folder.mkdir(parents=True)
    (tmp_path / "kept").rename(folder / "links-node0")
    program.apply_all(booted.edge, settings, ["node0"], only_look=False, as_json=True)
    assert list(folder.iterdir()) == []
