"""menagerie-vpn's decisions, with the answers of other programs given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from menagerie_vpn import host, keys, links, routes

LO = {"ifname": "lo", "mtu": 65536, "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}]}


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(keys, "KEYS", str(tmp_path))


def record_ip(monkeypatch: pytest.MonkeyPatch, there: list[dict[str, Any]]) -> list[str]:
    """Replace `ip`; return the list of commands that change something. there: the existing interfaces."""
    commands: list[str] = []

    def run(*command: str, **_: Any) -> str:
        if command[:3] == ("ip", "-j", "-d"):
            return json.dumps(there)
        commands.append(" ".join(command))
        return ""

    monkeypatch.setattr(host, "run", run)
    return commands


def xfrm(name: str, if_id: str, mtu: int, *addresses: str) -> dict[str, Any]:
    have = [{"family": "inet", "local": a.split("/")[0], "prefixlen": int(a.split("/")[1])} for a in addresses]
    info = {"info_kind": "xfrm", "info_data": {"if_id": if_id}}
    return {"ifname": name, "mtu": mtu, "addr_info": have, "linkinfo": info}


def links_settings(**links: dict[str, Any]) -> dict[str, Any]:
    return {"links": {name.replace("_", "-"): link for name, link in links.items()}, "loopback": ["169.254.21.2/32"]}


LINK = {"connection": "c-0", "if_id": 0x601, "mtu": 1438, "address": "169.254.6.2/30", "peer": "169.254.6.1"}


def test_a_missing_link_is_created_completely(monkeypatch) -> None:
    commands = record_ip(monkeypatch, [LO])
    monkeypatch.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    with pytest.raises(FileNotFoundError):  # the new link's rp_filter, which only the kernel has
        links.apply(links_settings(vpn_6_1=LINK), False)
    assert commands == [
        "ip link add vpn-6-1 type xfrm dev lo if_id 1537",
        "ip link set vpn-6-1 mtu 1438",
        "ip address add 169.254.6.2/30 dev vpn-6-1",
    ]


def test_a_dry_run_reports_the_same_and_changes_nothing(monkeypatch) -> None:
    commands = record_ip(monkeypatch, [LO])
    actions = links.apply(links_settings(vpn_6_1=LINK), True)
    assert commands == []
    assert actions == [
        "vpn-6-1: created with if_id 1537",
        "vpn-6-1: MTU new -> 1438",
        "vpn-6-1: 169.254.6.2/30 added",
        "lo: 169.254.21.2/32 added",
    ]


def test_a_link_with_other_keys_is_replaced_and_an_old_tunnel_is_removed(monkeypatch) -> None:
    there = [
        LO,
        xfrm("vpn-6-1", "0x7", 1438, "169.254.6.2/30"),
        xfrm("vpn-9-9", "0x909", 1438),
        xfrm("xfrm0", "0x1", 1400),
    ]
    record_ip(monkeypatch, there)
    actions = links.apply(links_settings(vpn_6_1=LINK), True)
    assert actions[:3] == ["vpn-9-9: removed", "vpn-6-1: if_id 7", "vpn-6-1: created with if_id 1537"]
    assert not any("xfrm0" in line for line in actions)


def test_a_correct_link_is_left_alone(monkeypatch) -> None:
    lo = {**LO, "addr_info": [*LO["addr_info"], {"family": "inet", "local": "169.254.21.2", "prefixlen": 32}]}
    record_ip(monkeypatch, [lo, xfrm("vpn-6-1", "0x601", 1438, "169.254.6.2/30")])
    assert links.apply(links_settings(vpn_6_1=LINK), True) == []


def test_a_link_that_somebody_took_down_comes_up_while_it_has_keys(monkeypatch) -> None:
    lo = {**LO, "addr_info": [*LO["addr_info"], {"family": "inet", "local": "169.254.21.2", "prefixlen": 32}]}
    record_ip(monkeypatch, [lo, xfrm("vpn-6-1", "0x601", 1438, "169.254.6.2/30")])
    monkeypatch.setenv("PLUTO_VERB", "up-client")
    keys.updown("vpn-6-1")
    assert links.apply(links_settings(vpn_6_1=LINK), True) == ["vpn-6-1: up, because it has keys"]


def test_other_addresses_on_the_loopback_stay(monkeypatch) -> None:
    old = {"family": "inet", "local": "169.254.22.2", "prefixlen": 32}
    own = {"family": "inet", "local": "10.0.0.1", "prefixlen": 32}
    record_ip(monkeypatch, [{**LO, "addr_info": [*LO["addr_info"], old, own]}])
    assert links.apply(links_settings(), True) == ["lo: 169.254.22.2/32 removed", "lo: 169.254.21.2/32 added"]


def test_an_interface_is_up_while_it_has_keys_however_they_come_and_go(monkeypatch) -> None:
    commands = record_ip(monkeypatch, [])
    for verb in ("up-client", "up-client", "down-client", "down-client", "down-client", "up-client", "other"):
        monkeypatch.setenv("PLUTO_VERB", verb)
        keys.updown("vpn-6-1")
    assert [line.rpartition(" ")[2] for line in commands] == ["up", "up", "up", "down", "down", "up"]


def test_frrs_running_configuration_is_compared_without_the_host_name() -> None:
    actions = "\nLines To Delete\n===============\nno hostname vm\n\nLines To Add\n============\nrouter bgp 65010\n network 10.0.0.0/8\n"
    assert routes.differences(actions) == ["FRR: +router bgp 65010", "FRR: + network 10.0.0.0/8"]
    assert routes.differences("\nLines To Delete\n===============\nno hostname vm\n") == []


@pytest.mark.parametrize(
    ("version", "steps"),
    [("8.4.4", []), *((new, ["FRR: +no ip nht resolve-via-default"]) for new in ("10.3", "unknown"))],
)
def test_what_frr_before_10_does_anyway_is_no_difference(
    monkeypatch: pytest.MonkeyPatch, version: str, steps: list[str]
) -> None:
    outputs = {
        routes.RELOAD: "\nLines To Add\n============\nno ip nht resolve-via-default\n",
        "vtysh": f"FRRouting {version} (edge-1) on Linux(6.1.0).\n",
    }
    monkeypatch.setattr(routes.host, "run", lambda *command: outputs[command[0]])
    assert routes.apply(True) == steps
