"""menagerie-vpn's own decisions, with other programs' answers given."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "roles" / "vpn_gateway" / "files" / "menagerie_vpn.py"
LO = {"ifname": "lo", "mtu": 65536, "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}]}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("menagerie_vpn", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEYS", str(tmp_path))
    return module


def asked(program: ModuleType, monkeypatch: pytest.MonkeyPatch, links: list[dict[str, Any]]) -> list[str]:
    """What `ip` is asked for, beside what there is."""
    seen: list[str] = []

    def run(*command: str, **_: Any) -> str:
        if command[:3] == ("ip", "-j", "-d"):
            return json.dumps(links)
        seen.append(" ".join(command))
        return ""

    monkeypatch.setattr(program, "run", run)
    return seen


def xfrm(name: str, if_id: str, mtu: int, *addresses: str) -> dict[str, Any]:
    have = [{"family": "inet", "local": a.split("/")[0], "prefixlen": int(a.split("/")[1])} for a in addresses]
    info = {"info_kind": "xfrm", "info_data": {"if_id": if_id}}
    return {"ifname": name, "mtu": mtu, "addr_info": have, "linkinfo": info}


def wanted(**links: dict[str, Any]) -> dict[str, Any]:
    return {"links": {name.replace("_", "-"): link for name, link in links.items()}, "loopback": ["169.254.21.2/32"]}


LINK = {"connection": "c-0", "if_id": 0x601, "mtu": 1438, "address": "169.254.6.2/30", "peer": "169.254.6.1"}


def test_a_link_that_is_not_there_is_made_whole(program, monkeypatch) -> None:
    seen = asked(program, monkeypatch, [LO])
    monkeypatch.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    with pytest.raises(FileNotFoundError):  # the new link's rp_filter, which only the kernel has
        program.links(wanted(vpn_6_1=LINK), False)
    assert seen == [
        "ip link add vpn-6-1 type xfrm dev lo if_id 1537",
        "ip link set vpn-6-1 mtu 1438",
        "ip address add 169.254.6.2/30 dev vpn-6-1",
    ]


def test_a_dry_run_tells_the_same_and_asks_for_nothing(program, monkeypatch) -> None:
    seen = asked(program, monkeypatch, [LO])
    told = program.links(wanted(vpn_6_1=LINK), True)
    assert seen == []
    assert told == [
        "vpn-6-1: made with if_id 1537",
        "vpn-6-1: MTU new -> 1438",
        "vpn-6-1: 169.254.6.2/30 added",
        "lo: 169.254.21.2/32 added",
    ]


def test_a_link_with_other_keys_is_made_anew_and_a_former_tunnel_goes(program, monkeypatch) -> None:
    there = [
        LO,
        xfrm("vpn-6-1", "0x7", 1438, "169.254.6.2/30"),
        xfrm("vpn-9-9", "0x909", 1438),
        xfrm("xfrm0", "0x1", 1400),
    ]
    asked(program, monkeypatch, there)
    told = program.links(wanted(vpn_6_1=LINK), True)
    assert told[:3] == ["vpn-9-9: removed", "vpn-6-1: if_id 7", "vpn-6-1: made with if_id 1537"]
    assert not any("xfrm0" in line for line in told)


def test_a_link_as_wanted_is_left(program, monkeypatch) -> None:
    lo = {**LO, "addr_info": [*LO["addr_info"], {"family": "inet", "local": "169.254.21.2", "prefixlen": 32}]}
    asked(program, monkeypatch, [lo, xfrm("vpn-6-1", "0x601", 1438, "169.254.6.2/30")])
    assert program.links(wanted(vpn_6_1=LINK), True) == []


def test_a_link_that_somebody_took_down_comes_up_while_it_has_keys(program, monkeypatch) -> None:
    lo = {**LO, "addr_info": [*LO["addr_info"], {"family": "inet", "local": "169.254.21.2", "prefixlen": 32}]}
    asked(program, monkeypatch, [lo, xfrm("vpn-6-1", "0x601", 1438, "169.254.6.2/30")])
    monkeypatch.setenv("PLUTO_VERB", "up-client")
    program.updown("vpn-6-1")
    assert program.links(wanted(vpn_6_1=LINK), True) == ["vpn-6-1: up, for it has keys"]


def test_addresses_of_others_on_the_loopback_stay(program, monkeypatch) -> None:
    old = {"family": "inet", "local": "169.254.22.2", "prefixlen": 32}
    own = {"family": "inet", "local": "10.0.0.1", "prefixlen": 32}
    asked(program, monkeypatch, [{**LO, "addr_info": [*LO["addr_info"], old, own]}])
    assert program.links(wanted(), True) == ["lo: 169.254.22.2/32 removed", "lo: 169.254.21.2/32 added"]


def test_an_interface_is_up_while_it_has_keys_however_they_come_and_go(program, monkeypatch) -> None:
    seen = asked(program, monkeypatch, [])
    for verb in ("up-client", "up-client", "down-client", "down-client", "down-client", "up-client", "other"):
        monkeypatch.setenv("PLUTO_VERB", verb)
        program.updown("vpn-6-1")
    assert [line.rpartition(" ")[2] for line in seen] == ["up", "up", "up", "down", "down", "up"]


def test_what_frr_runs_is_compared_but_for_the_machine_s_name(program) -> None:
    told = "\nLines To Delete\n===============\nno hostname vm\n\nLines To Add\n============\nrouter bgp 65010\n network 10.0.0.0/8\n"
    assert program.differences(told) == ["FRR: +router bgp 65010", "FRR: + network 10.0.0.0/8"]
    assert program.differences("\nLines To Delete\n===============\nno hostname vm\n") == []
