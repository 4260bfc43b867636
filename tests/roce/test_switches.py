"""Snippets for switches come from the hosts' settings, and the switches' facts are compared with them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.problems import SpecError
from cluster.roce import Device, Roce
from network.roce import facts
from network.roce.host import settings as host_settings
from network.roce.switches import PORTS, System, numbers, snippet

GOLDEN = Path(__file__).parents[1] / "golden" / "roce"
RAILS = {"gpu": {"rail-0": Device(interface="ens1f0")}}
USUAL = Roce(rails=RAILS)
OTHER = Roce.model_validate(
    {"rails": RAILS, "fabric": "lossy", "priority": 5, "dscp": 40, "cnp_dscp": 56, "cnp_priority": 7, "link_mtu": 9216}
)
AGREEING = """
switches:
  leaf-1:
    trust: dscp
    pfc: [3]
    dscp_to_priority: {26: 3, 48: 6}
    ecn: [0, 3]
    strict: [6]
    lossless_most: 2
    global_pause: false
    mtu: 9216
    ports:
      17: {mtu: 9000}
"""


@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize(("name", "roce"), [("usual", USUAL), ("other", OTHER)])
def test_snippets_match_the_golden_files(system: System, name: str, roce: Roce) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    path = GOLDEN / f"{system}-{name}.txt"
    rendered = snippet(roce, system)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered)
    assert rendered == path.read_text()


MARKS = st.integers(1, 63)
PRIORITIES = st.integers(1, 7)
FABRICS = st.builds(
    lambda fabric, dscps, priorities: Roce.model_validate(
        {
            "rails": RAILS, "fabric": fabric, "dscp": dscps[0], "cnp_dscp": dscps[1],
            "priority": priorities[0], "cnp_priority": priorities[1],
        }
    ),
    st.sampled_from(["lossless", "lossy"]),
    st.lists(MARKS, min_size=2, max_size=2, unique=True),
    st.lists(PRIORITIES, min_size=2, max_size=2, unique=True),
)  # fmt: skip


@settings(max_examples=60)
@given(FABRICS)
def test_every_system_gets_the_hosts_numbers(roce: Roce) -> None:
    host = host_settings(roce, "gpu")
    maps = ((host["dscp"], host["priority"]), (host["cnp_dscp"], host["cnp_priority"]))
    lossless = host["fabric"] == "lossless"
    onyx, eos, nvue = (snippet(roce, system) for system in (System.ONYX, System.EOS, System.CUMULUS))
    usual = maps == ((26, 3), (48, 6))
    for dscp, priority in maps:
        assert f"qos map dscp {dscp} to switch-priority {priority}\n" in onyx
        assert f"qos map dscp {dscp} to traffic-class {priority}\n" in eos
        assert usual or f"mapping default-global dscp {dscp} switch-priority {priority}\n" in nvue
    assert (f"dcb priority-flow-control priority {host['priority']} enable\n" in onyx) is lossless
    assert re.findall(r"priority-flow-control priority (\d) no-drop", eos) == [str(host["priority"])] * lossless
    assert f"nv set qos roce mode {host['fabric']}\n" in nvue


@settings(max_examples=60)
@given(FABRICS)
def test_sonics_tables_are_complete_and_have_the_hosts_numbers(roce: Roce) -> None:
    host, tables = host_settings(roce, "gpu"), json.loads(snippet(roce, System.SONIC))
    marks = tables["DSCP_TO_TC_MAP"]["ROCE"]
    assert list(marks) == [str(dscp) for dscp in range(64)]
    assert {dscp: tc for dscp, tc in marks.items() if tc != "0"} == {
        str(host["dscp"]): str(host["priority"]),
        str(host["cnp_dscp"]): str(host["cnp_priority"]),
    }
    port = PORTS[System.SONIC]
    lossless = host["fabric"] == "lossless"
    assert tables["PORT_QOS_MAP"][port]["pfc_enable"] == (str(host["priority"]) if lossless else "")
    assert tables["QUEUE"][f"{port}|{host['priority']}"]["wred_profile"] == "ROCE"
    assert tables["TC_TO_PRIORITY_GROUP_MAP"]["ROCE"][str(host["priority"])] == (
        str(host["priority"]) if lossless else "0"
    )
    assert ("BUFFER_PG" in tables) is lossless


def test_ports_have_the_names_that_the_operator_gives() -> None:
    assert "interface Ethernet5/1\n" in snippet(USUAL, System.EOS, "Ethernet5/1")


def test_switches_get_the_same_numbers_as_hosts() -> None:
    host, switch = host_settings(USUAL, "gpu"), numbers(USUAL)
    shared = set(host) & set(switch)
    assert {"fabric", "priority", "dscp", "cnp_dscp", "cnp_priority", "tos", "link_mtu"} <= shared
    assert {key: host[key] for key in shared} == {key: switch[key] for key in shared}


def compared(tmp_path: Path, text: str, roce: Roce = USUAL, site: str | None = None) -> list[str]:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    switches, document = facts.load(path)
    return [f"{p.line} {p.code} {p.message}" for p in facts.compare(roce, switches, document, site)]


def test_matching_switches_give_no_problem(tmp_path: Path) -> None:
    assert compared(tmp_path, AGREEING) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "17: {mtu: 9000}", "17: {mtu: 1500}",
            "13 ROC-002 roce.mtu 4096 needs link MTU 4192 or more on every hop; switch leaf-1 port 17 has 1500 (RDMA would drop to 1024)",
        ),
        (
            "17: {mtu: 9000}", "17: {mtu: 4200}",
            "13 ROC-002 hosts may send 9000 bytes (roce.link_mtu), but switch leaf-1 port 17 takes 4200 and drops larger packets",
        ),
        ("pfc: [3]", "pfc: [4]", "5 ROC-003 PFC priority is 3 on hosts and 4 on leaf-1; they must be equal"),
        ("pfc: [3]", "pfc: []", "5 ROC-003 PFC priority is 3 on hosts and none on leaf-1; they must be equal"),
        (
            "26: 3,", "26: 4,",
            "6 ROC-003 DSCP 26 (RDMA) is priority 3 on hosts and 4 on leaf-1; they must be equal",
        ),
        (
            ", 48: 6", "",
            "6 ROC-003 DSCP 48 (congestion notifications) is priority 6 on hosts and none on leaf-1; they must be equal",
        ),
        ("trust: dscp", "trust: pcp", "4 ROC-003 trust is dscp on hosts and pcp on leaf-1; it would ignore RDMA's mark"),
        ("ecn: [0, 3]", "ecn: [0]", "7 ROC-003 ECN is on for priority 0 on leaf-1, not for RDMA's 3; nothing slows senders"),
        ("strict: [6]", "strict: [7]", "8 ROC-003 congestion notifications have priority 6, which isn't strict on leaf-1"),
        (
            "global_pause: false", "global_pause: true",
            "10 ROC-003 global pause is off on hosts and on at leaf-1; it stops all priorities and rules out PFC",
        ),
    ],
)  # fmt: skip
def test_each_difference_is_reported_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert compared(tmp_path, AGREEING.replace(old, new)) == [expected]


def test_too_many_lossless_priorities_for_the_buffers_are_reported_too(tmp_path: Path) -> None:
    text = AGREEING.replace("pfc: [3]", "pfc: [3, 4]").replace("lossless_most: 2", "lossless_most: 1")
    assert compared(tmp_path, text) == [
        "5 ROC-003 PFC priority is 3 on hosts and 3, 4 on leaf-1; they must be equal",
        "5 ROC-003 leaf-1 has no buffers for PFC on more than one lossless priority",
    ]


def test_a_lossy_fabric_needs_pfc_off(tmp_path: Path) -> None:
    lossy = Roce.model_validate({"rails": RAILS, "fabric": "lossy"})
    assert compared(tmp_path, AGREEING, lossy) == [
        "5 ROC-003 PFC priority is none on hosts and 3 on leaf-1; they must be equal"
    ]


def test_omitted_settings_are_not_compared(tmp_path: Path) -> None:
    assert compared(tmp_path, "switches:\n  leaf-1: {}\n") == []


def test_all_differences_of_a_sites_switches_are_reported_at_once(tmp_path: Path) -> None:
    text = "switches:\n  a: {pfc: [4], mtu: 1500}\n  b: {site: lax1, pfc: [5]}\n"
    assert [line[:9] for line in compared(tmp_path, text)] == ["2 ROC-003", "2 ROC-002", "3 ROC-003"]
    assert [line[:9] for line in compared(tmp_path, text, site="sjc1")] == ["2 ROC-003", "2 ROC-002"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("switches:\n  a: {pfc: [9]}\n", "2:13: error[CFG-015]"),
        ("switches:\n  a: {pcf: [3]}\n", "2:7: error[CFG-001]"),
        ("switches:\n  a: {trust: dhcp}\n", "2:14: error[CFG-015]"),
        ("switch: {}\n", "1:1: error[CFG-001]"),
        ("", "CFG-012"),
        ("switches: [\n", "error[CFG-011]"),
    ],
)
def test_mistakes_in_a_file_are_reported_by_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SpecError) as refused:
        compared(tmp_path, text)
    assert expected in str(refused.value)
