"""menagerie-roce on hosts with several cards. tests/roles/roce_hosts.py says where their shapes are from."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from cluster.roce import MTUS, Device, Fabric, Roce, mtu_over
from roce.host import settings
from tests.roles import roce_hosts as cards
from tests.roles.roce_hosts import CARDS, CX5, INTERFACE, PCI, Card, Host, build

PROGRAM = Path(__file__).parents[2] / "roles" / "roce" / "files" / "menagerie_roce.py"
Made = Callable[..., Host]
READING = {("-a",), ("show",)}


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("menagerie_roce", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def host(program: ModuleType, tmp_path: Path) -> Made:
    """host(card, **changes): a host with one port of a card."""
    return lambda card=CX5, **changes: build(program, tmp_path / "root", replace(card, **changes))


def told(**changes: object) -> dict[str, object]:
    """The settings that a host of a fabric is given, by the model that the switches' side is made from."""
    device = changes.pop("device", Device(interface=INTERFACE))
    return settings(Roce.model_validate({"rails": {"gpu": {"rail-0": device}}, **changes}), "gpu")


def is_mutation(call: tuple[str, ...]) -> bool:
    reads = (call[0] == "mlnx_qos" and len(call) == 3) or call[1] == "-a" or "show" in call or "--get" in call
    return not reads


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_port_as_it_comes_is_brought_to_what_the_fabric_wants_and_stays(
    program: ModuleType, host: Made, card: Card
) -> None:
    one = host(card)
    first = program.bring(one.edge, told(), "rail-0", check=False)
    assert first.wrong == ()
    assert (one.qos.pause, one.qos.dcbx if card.prints_dcbx else "OS") == (("off", "off"), "OS")
    assert (one.qos.mapped[26], one.qos.mapped[48], one.qos.pfc) == (3, 6, [0, 0, 0, 1, 0, 0, 0, 0])
    assert one.text(f"/sys/kernel/config/rdma_cm/{card.rdma}/ports/1/default_roce_tos") == "106"
    one.calls.clear()
    second = program.bring(one.edge, told(), "rail-0", check=False)
    assert (second.changed, second.wrong) == ((), ())
    assert [call for call in one.calls if is_mutation(call)] == []


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("set_before", [False, True])
def test_check_tells_what_a_run_would_change_and_changes_nothing(
    program: ModuleType, host: Made, card: Card, set_before: bool
) -> None:
    one = host(card)
    if set_before:
        program.bring(one.edge, told(), "rail-0", check=False)
        one.qos.pfc = [0] * 8
    before, state = one.files(), repr(one.qos)
    one.calls.clear()
    looked = program.bring(one.edge, told(), "rail-0", check=True)
    assert (one.files(), repr(one.qos)) == (before, state)
    assert [call for call in one.calls if is_mutation(call)] == []
    if set_before:
        assert looked.changed == ("PFC: 0,0,0,0,0,0,0,0 -> 0,0,0,1,0,0,0,0",)
    assert looked.changed == program.bring(one.edge, told(), "rail-0", check=False).changed


def test_what_ofed_s_driver_has_besides_is_set_as_well(program: ModuleType, host: Made) -> None:
    one = host(CX5)
    result = program.bring(one.edge, told(cnp_dscp=46, cnp_priority=5), "rail-0", check=False)
    assert (result.wrong, result.notes) == ((), ())
    net = f"/sys/class/net/{INTERFACE}"
    assert one.text("/sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "Global tclass=106"
    enabled = {side: [one.text(f"{net}/ecn/roce_{side}/enable/{n}") for n in range(8)] for side in ("np", "rp")}
    assert enabled == {"np": list("00010000"), "rp": list("00010000")}
    assert [one.text(f"{net}/ecn/roce_np/{name}") for name in ("cnp_dscp", "cnp_802p_prio")] == ["46", "5"]
    assert one.qos.accel == 0


def test_linux_own_driver_takes_the_mark_of_notifications_through_debugfs(program: ModuleType, host: Made) -> None:
    one = host(cards.CX6_DX_IN_LINUX)
    result = program.bring(one.edge, told(), "rail-0", check=False)
    folder = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
    assert [one.text(f"{folder}/{name}") for name in ("np_cnp_dscp", "np_cnp_prio")] == ["48", "6"]
    assert [note.split(" is left")[0] for note in result.notes] == [
        "ECN, receiving", "ECN, sending", "traffic class", "recovery from loss",
    ]  # fmt: skip


def test_broadcom_s_own_driver_is_set_through_configfs(program: ModuleType, host: Made) -> None:
    one = host(cards.THOR)
    assert program.bring(one.edge, told(), "rail-0", check=False).wrong == ()
    folder = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
    names = ("ecn_marking", "ecn_enable", "cnp_dscp", "cnp_prio", "apply")
    assert [one.text(f"{folder}/{name}") for name in names] == ["0x1", "0x1", "0x30", "0x6", "0x1"]


def test_a_lossy_fabric_has_no_pfc_and_cards_that_repeat_what_is_lost(program: ModuleType, host: Made) -> None:
    one = host(CX5)
    one.qos.accel, one.qos.pfc = 0, [0, 0, 0, 1, 0, 0, 0, 0]
    assert program.bring(one.edge, told(fabric="lossy"), "rail-0", check=False).wrong == ()
    assert (one.qos.pfc, one.qos.accel, one.qos.trust) == ([0] * 8, 1, "dscp")


def test_a_fabric_of_other_numbers_is_set_to_them(program: ModuleType, host: Made) -> None:
    one = host(CX5)
    assert program.bring(one.edge, told(priority=5, dscp=40), "rail-0", check=False).wrong == ()
    assert (one.qos.mapped[40], one.qos.pfc) == (5, [0, 0, 0, 0, 0, 1, 0, 0])
    assert one.text("/sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "Global tclass=162"


def test_a_port_is_found_by_its_pci_address(program: ModuleType, host: Made) -> None:
    result = program.bring(host(CX5).edge, told(device=Device(pci=PCI)), "rail-0", check=False)
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
def test_what_can_not_carry_roce_is_refused_by_name(program: ModuleType, host: Made, card: Card, message: str) -> None:
    one = host(card)
    (wrong,) = program.bring(one.edge, told(), "rail-0", check=False).wrong
    assert message in wrong
    assert [call for call in one.calls if is_mutation(call)] == []


def test_bonds_and_what_is_no_port_are_refused(program: ModuleType, host: Made) -> None:
    one = host(CX5)
    net = f"/sys/class/net/{INTERFACE}"
    one.put("/sys/class/net/bond0/bonding/mode", "802.3ad 4")
    one.put("/sys/class/net/vlan7/mtu", 9000)
    refusals = {
        "bond0": "bond0: it is a bond; name its ports, each a rail of its own",
        "vlan7": "vlan7: it is no port of a card; name the port under it",
        "ens9": "ens9: this host has no such interface",
    }
    for name, message in refusals.items():
        assert program.bring(one.edge, told(device=Device(interface=name)), "rail-0", check=False).wrong == (message,)
    absent = program.bring(one.edge, told(device=Device(pci="0000:99:00.0")), "rail-0", check=False)
    assert absent.wrong == ("0000:99:00.0: the device is not in this host",)
    one.link(f"{net}/device/physfn", "/sys/devices/pci0000:17/0000:1a:00.1")
    (wrong,) = program.bring(one.edge, told(), "rail-0", check=False).wrong
    assert wrong == "ens1f0np0: it is a virtual function; its port's settings belong to 0000:1a:00.1"
    one.put(f"{net}/bonding_slave/state", "active")
    one.link(f"{net}/master", "/sys/class/net/bond0")
    (wrong,) = program.bring(one.edge, told(), "rail-0", check=False).wrong
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
def test_what_is_not_as_wanted_when_it_is_read_back_is_told(
    program: ModuleType, host: Made, changes: dict[str, object], fabric: dict[str, object], message: str
) -> None:
    one = host(CX5, **changes)
    result = program.bring(one.edge, told(**fabric), "rail-0", check=False)
    assert result.wrong == (message,)
    assert message.split(": ")[1].split(" is ")[0] not in " ".join(result.changed)


def test_firmware_that_can_not_trust_dscp_is_told_with_the_tool_s_own_words(program: ModuleType, host: Made) -> None:
    first, *_ = program.bring(host(CX5, can_trust=False).edge, told(), "rail-0", check=False).wrong
    assert first == (
        "ens1f0np0: trust is none, wanted dscp: mlnx_qos -i ens1f0np0 --trust dscp: "
        "Priority trust state is not supported on your system"
    )


@pytest.mark.parametrize("changes", [{"has_pause": False}, {"up": False}])
def test_what_does_no_harm_by_missing_is_only_noted(program: ModuleType, host: Made, changes: dict[str, bool]) -> None:
    result = program.bring(host(CX5, **changes).edge, told(gbit_s=100), "rail-0", check=False)
    assert result.wrong == ()
    assert len(result.notes) == 1


def test_facts_are_what_a_test_needs(program: ModuleType, host: Made) -> None:
    assert program.facts(host(cards.CX7, mtu=4200).edge, told(), "rail-0") == {
        "interface": INTERFACE, "rdma": "mlx5_0", "port": 1, "gid_index": 3, "gbit_s": 400, "mtu": 4096, "state": "ACTIVE",
    }  # fmt: skip


def test_a_port_without_an_address_has_no_facts(program: ModuleType, host: Made) -> None:
    one = host(CX5)
    one.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000")
    with pytest.raises(program.Refused, match="no RoCE v2 address over IPv4; give the port an address"):
        program.facts(one.edge, told(), "rail-0")


def test_a_port_is_set_again_when_its_link_comes_back_and_only_then(program: ModuleType, host: Made) -> None:
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


def test_a_port_that_can_not_be_set_again_ends_the_unit(program: ModuleType, host: Made) -> None:
    one, ready = host(CX5), []

    def events():
        one.card = replace(one.card, ignores_pfc=True)
        one.qos.pfc = [0] * 8
        one.put(f"/sys/class/net/{INTERFACE}/carrier_changes", 8)
        yield None
        raise AssertionError("it went on")

    assert program.watch(one.edge, told(), "rail-0", events(), lambda: ready.append(True)) == 1
    assert ready == [True]


def test_a_unit_is_not_ready_before_its_port_is_set(program: ModuleType, host: Made) -> None:
    ready: list[bool] = []
    assert program.watch(host(cards.X710).edge, told(), "rail-0", iter(()), lambda: ready.append(True)) == 1
    assert ready == []


@pytest.fixture
def command(program: ModuleType, host: Made, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
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
    command: Callable[..., tuple[int, str, str]], host: Made, program: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    one = host(CX5)
    assert program.main(["apply"], one.edge) == 1
    assert "run: menagerie up CLUSTER --tags roce" in capsys.readouterr().err
    assert command(one, "apply", "rail-9")[::2] == (1, "no rail rail-9; there are: rail-0\n")


def test_facts_of_a_refused_port_are_its_refusal(command: Callable[..., tuple[int, str, str]], host: Made) -> None:
    code, out, _ = command(host(cards.X710), "facts")
    assert (code, list(json.loads(out)["rail-0"])) == (0, ["refused"])


def test_both_ends_of_the_project_choose_one_mtu(program: ModuleType) -> None:
    links = [*range(300, 9217, 7), *(mtu + delta for mtu in MTUS for delta in (95, 96))]
    assert [program.smaller_mtu(link) for link in links] == [mtu_over(link) for link in links]


def test_of_several_lines_of_one_priority_all_count(program: ModuleType) -> None:
    """A port where DSCP 30 and 48 were mapped by hand ("RoCE over Switch" guides): priority 6 has two lines."""
    text = "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:6 dscp:30,55,54,53,52,51,50,49,\n\tprio:6 dscp:48,\n"
    found = program.parse_mlnx_qos(text)
    assert {dscp for dscp, priority in found.mapped.items() if priority == "6"} == {30, *range(48, 56)}


def test_traffic_class_counts_by_its_global_value(program: ModuleType) -> None:
    assert program.number("Global tclass=106\n") == "106"
    assert program.number("Global tclass=106\ntclass=32 src_ip=1.1.1.2\n") == "106"
    assert [program.number(text) for text in ("", None, "0x30")] == ["not set", "not set", "48"]


def test_the_fabric_s_words_are_the_program_s(program: ModuleType) -> None:
    for fabric in Fabric:
        values = program.wanted(told(fabric=str(fabric)), "mlx5_core")
        assert values["PFC"].count("1") == (fabric is Fabric.LOSSLESS)


def test_systemd_is_told_when_a_port_is_set(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        program.tell_systemd("READY=1")
        assert manager.recv(100) == b"READY=1"


def test_the_kernel_s_own_link_events_are_heard_as_one_burst() -> None:
    """In a network namespace of its own, whose loopback goes up and down three times."""
    script = (
        "import importlib.util, subprocess, sys, threading\n"
        "spec = importlib.util.spec_from_file_location('m', sys.argv[1])\n"
        "m = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(m)\n"
        "events = m.link_events()\n"
        "for state in ('up', 'down', 'up'):\n"
        "    subprocess.run(['ip', 'link', 'set', 'lo', state], check=True)\n"
        "next(events)\n"
        "print('heard', m._heard.__name__)\n"
    )
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", script, str(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip("no right to a network namespace")
    assert done.stdout == "heard _heard\n", done.stderr
