"""Output and exit codes of menagerie-roce, and when it sets a port again."""

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
from tests.roles.roce_hosts import INTERFACE, Host, build, host_settings

Made = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path) -> Made:
    """Return a function that builds a host with one port of a card."""
    return lambda card=CX5, **changes: build(tmp_path / "root", replace(card, **changes))


def test_facts_have_what_a_fabric_test_needs(host: Made) -> None:
    assert facts(host(cards.CX7, mtu=4200).edge, host_settings(), "rail-0") == {
        "interface": INTERFACE, "rdma": "mlx5_0", "port": 1, "gid_index": 3, "gbit_s": 400, "mtu": 4096, "state": "ACTIVE",
    }  # fmt: skip


def test_a_port_without_an_address_has_no_facts(host: Made) -> None:
    port_host = host(CX5)
    port_host.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000")
    with pytest.raises(Refused, match="no RoCE v2 address over IPv4; give the port an address"):
        facts(port_host.edge, host_settings(), "rail-0")


def test_a_port_is_set_again_when_its_link_comes_back_and_only_then(host: Made) -> None:
    port_host, ready, net = host(CX5), [], f"/sys/class/net/{INTERFACE}"
    states = []

    def events():
        def lost() -> None:
            port_host.qos.pfc = [0] * 8

        lost()
        yield None  # another interface's event
        states.append(port_host.qos.pfc[3])
        port_host.put(f"{net}/carrier", 0)
        port_host.put(f"{net}/carrier_changes", 3)
        yield None  # down
        states.append(port_host.qos.pfc[3])
        port_host.put(f"{net}/carrier", 1)
        port_host.put(f"{net}/carrier_changes", 4)
        yield None  # up again
        states.append(port_host.qos.pfc[3])
        lost()
        port_host.put(f"{net}/carrier_changes", 6)
        yield None  # down and up within one burst
        states.append(port_host.qos.pfc[3])
        lost()
        port_host.put(f"{net}/ifindex", 9)
        yield None  # the driver was reloaded
        states.append(port_host.qos.pfc[3])

    assert (
        program.watch(port_host.edge, host_settings(), "rail-0", events(), lambda: ready.append(port_host.qos.pfc[3]))
        == 0
    )
    assert (ready, states) == ([1], [0, 0, 1, 1, 1])


def test_a_port_that_can_not_be_set_again_ends_the_unit(host: Made) -> None:
    port_host, ready = host(CX5), []

    def events():
        port_host.card = replace(port_host.card, ignores_pfc=True)
        port_host.qos.pfc = [0] * 8
        port_host.put(f"/sys/class/net/{INTERFACE}/carrier_changes", 8)
        yield None
        raise AssertionError("the watch continued")

    assert program.watch(port_host.edge, host_settings(), "rail-0", events(), lambda: ready.append(True)) == 1
    assert ready == [True]


def test_a_unit_is_not_ready_before_its_port_is_set(host: Made) -> None:
    ready: list[bool] = []
    assert program.watch(host(cards.X710).edge, host_settings(), "rail-0", iter(()), lambda: ready.append(True)) == 1
    assert ready == []


@pytest.fixture
def command(host: Made, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the program with its settings file, and returns (exit code, output, errors)."""

    def run(port_host: Host, *words: str) -> tuple[int, str, str]:
        port_host.put("/etc/menagerie/roce.json", json.dumps(host_settings()))
        code = program.main(list(words), port_host.edge)
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


def test_exit_codes_have_the_meaning_that_the_role_needs(
    command: Callable[..., tuple[int, str, str]], host: Made
) -> None:
    port_host = host(CX5)
    code, out, _ = command(port_host, "apply", "--check", "--json")
    (rail,) = json.loads(out)["rails"]
    assert (code, rail["rail"], rail["wrong"]) == (2, "rail-0", [])
    assert "trust: pcp -> dscp" in rail["changed"]
    assert command(port_host, "apply")[0] == 0
    assert command(port_host, "apply", "--check")[0] == 0
    port_host.put(f"/sys/class/net/{INTERFACE}/mtu", 1500)
    code, _, err = command(port_host, "apply", "--check")
    assert (code, err.startswith(f"{os.uname().nodename}/ens1f0np0: roce.mtu 4096 needs")) == (1, True)


def test_mistakes_on_the_command_line_are_reported(
    command: Callable[..., tuple[int, str, str]], host: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    port_host = host(CX5)
    assert program.main(["apply"], port_host.edge) == 1
    assert "run: menagerie up CLUSTER --tags roce" in capsys.readouterr().err
    assert command(port_host, "apply", "rail-9")[::2] == (1, "no rail rail-9; there are: rail-0\n")


def test_the_facts_of_a_refused_port_are_its_refusal(command: Callable[..., tuple[int, str, str]], host: Made) -> None:
    code, out, _ = command(host(cards.X710), "facts")
    assert (code, list(json.loads(out)["rail-0"])) == (0, ["refused"])
