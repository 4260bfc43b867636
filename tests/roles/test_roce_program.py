"""What menagerie-roce says and with which code it ends, and when it sets a port again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from menagerie_roce import __main__ as program
from menagerie_roce.edge import Refused
from menagerie_roce.facts import facts

from tests.roles import roce_cards as cards
from tests.roles.roce_cards import CX5
from tests.roles.roce_hosts import INTERFACE, Host, build, told

Made = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path) -> Made:
    """host(card, **changes): a host with one port of a card."""
    return lambda card=CX5, **changes: build(tmp_path / "root", replace(card, **changes))


def test_facts_are_what_a_test_needs(host: Made) -> None:
    assert facts(host(cards.CX7, mtu=4200).edge, told(), "rail-0") == {
        "interface": INTERFACE, "rdma": "mlx5_0", "port": 1, "gid_index": 3, "gbit_s": 400, "mtu": 4096, "state": "ACTIVE",
    }  # fmt: skip


def test_a_port_without_an_address_has_no_facts(host: Made) -> None:
    one = host(CX5)
    one.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000")
    with pytest.raises(Refused, match="no RoCE v2 address over IPv4; give the port an address"):
        facts(one.edge, told(), "rail-0")


def test_a_port_is_set_again_when_its_link_comes_back_and_only_then(host: Made) -> None:
    one, ready, net = host(CX5), [], f"/sys/class/net/{INTERFACE}"
    seen = []

    def events():
        def lost() -> None:
            one.qos.pfc = [0] * 8

        lost()
        yield None  # another interface's event
        seen.append(one.qos.pfc[3])
        one.put(f"{net}/carrier", 0)
        one.put(f"{net}/carrier_changes", 3)
        yield None  # down
        seen.append(one.qos.pfc[3])
        one.put(f"{net}/carrier", 1)
        one.put(f"{net}/carrier_changes", 4)
        yield None  # up again
        seen.append(one.qos.pfc[3])
        lost()
        one.put(f"{net}/carrier_changes", 6)
        yield None  # down and up within one burst
        seen.append(one.qos.pfc[3])
        lost()
        one.put(f"{net}/ifindex", 9)
        yield None  # the driver was loaded anew
        seen.append(one.qos.pfc[3])

    assert program.watch(one.edge, told(), "rail-0", events(), lambda: ready.append(one.qos.pfc[3])) == 0
    assert (ready, seen) == ([1], [0, 0, 1, 1, 1])


def test_a_port_that_can_not_be_set_again_ends_the_unit(host: Made) -> None:
    one, ready = host(CX5), []

    def events():
        one.card = replace(one.card, ignores_pfc=True)
        one.qos.pfc = [0] * 8
        one.put(f"/sys/class/net/{INTERFACE}/carrier_changes", 8)
        yield None
        raise AssertionError("it went on")

    assert program.watch(one.edge, told(), "rail-0", events(), lambda: ready.append(True)) == 1
    assert ready == [True]


def test_a_unit_is_not_ready_before_its_port_is_set(host: Made) -> None:
    ready: list[bool] = []
    assert program.watch(host(cards.X710).edge, told(), "rail-0", iter(()), lambda: ready.append(True)) == 1
    assert ready == []


@pytest.fixture
def command(host: Made, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """command(host, words): (exit code, output, errors) of the program with its settings file in place."""

    def run(one: Host, *words: str) -> tuple[int, str, str]:
        one.put("/etc/menagerie/roce.json", json.dumps(told()))
        code = program.main(list(words), one.edge)
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


def test_exit_codes_tell_what_a_run_of_the_role_needs(command: Callable[..., tuple[int, str, str]], host: Made) -> None:
    one = host(CX5)
    code, out, _ = command(one, "apply", "--check", "--json")
    (rail,) = json.loads(out)["rails"]
    assert (code, rail["rail"], rail["wrong"]) == (2, "rail-0", [])
    assert "trust: pcp -> dscp" in rail["changed"]
    assert command(one, "apply")[0] == 0
    assert command(one, "apply", "--check")[0] == 0
    one.put(f"/sys/class/net/{INTERFACE}/mtu", 1500)
    code, _, err = command(one, "apply", "--check")
    assert (code, err.startswith(f"{os.uname().nodename}/ens1f0np0: roce.mtu 4096 needs")) == (1, True)


def test_mistakes_at_the_command_line_are_told(
    command: Callable[..., tuple[int, str, str]], host: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    one = host(CX5)
    assert program.main(["apply"], one.edge) == 1
    assert "run: menagerie up CLUSTER --tags roce" in capsys.readouterr().err
    assert command(one, "apply", "rail-9")[::2] == (1, "no rail rail-9; there are: rail-0\n")


def test_facts_of_a_refused_port_are_its_refusal(command: Callable[..., tuple[int, str, str]], host: Made) -> None:
    code, out, _ = command(host(cards.X710), "facts")
    assert (code, list(json.loads(out)["rail-0"])) == (0, ["refused"])
