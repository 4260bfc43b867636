"""Xids: lines in the kernel's log, and what they mean for a host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def xid(preflight):
    return preflight.xid


@pytest.fixture(scope="module")
def rules(xid):
    return xid.rules()


def findings(xid, rules, text, cleared=0.0):
    return xid.findings(xid.parse(text.splitlines()), cleared, rules)


def test_xids_of_applications_and_details_take_no_host_out_of_service(xid, rules, fixture):
    results = findings(xid, rules, fixture("kernel-good.log"))
    assert [(finding.level, finding.text) for finding in results] == [
        ("watch", "GPU 0000:5a:00: Xid 63 (memory row marked for remapping): keep an eye on it"),
        ("watch", "GPU 0000:5a:00: Xid 94 (contained memory error): keep an eye on it"),
        ("watch", "NVSwitch 0000:c4:00: SXid 12028 (Link 32 egress non-posted PRIV error (First)): keep an eye on it"),
    ]


BAD = {
    "0000:5a:00: Xid 79 (GPU has fallen off the bus): drain, then power-cycle the host": "fail",
    "0000:3b:00: Xid 64 (memory row could not be remapped): drain, then repair or replace it": "fail",
    "0000:3b:00: Xid 48 (double bit ECC error): drain, then reset the GPU": "fail",
    "0000:18:00: Xid 95 (uncontained memory error): drain, then reset the GPU": "fail",
    "0000:18:00: Xid 119 (GSP did not answer in time), 2 times: drain, then reset the GPU": "fail",
    "0000:19:00: Xid 149 (NVLink 5 error (NETIR)): drain, then reset the GPU": "fail",
    "0000:1a:00: Xid 145 (NVLink 5 error (RLW)): keep an eye on it": "watch",
    "0000:1b:00: Xid 154 (GPU recovery action changed): drain, then power-cycle the host": "fail",
}


def test_xids_of_hardware_take_the_host_out_of_service_and_say_what_to_do(xid, rules, fixture):
    levels = {
        finding.text.removeprefix("GPU "): finding.level for finding in findings(xid, rules, fixture("kernel-bad.log"))
    }
    switch = {text: level for text, level in levels.items() if text.startswith("NVSwitch")}
    assert {text: level for text, level in levels.items() if text not in switch} == BAD
    assert switch == {"NVSwitch 0000:c5:00: SXid 20034 (Link 30 LTSSM Fault Up): drain, then reset the GPU": "fail"}


def test_the_worst_comes_first(xid, rules, fixture):
    advice = [finding.text.rpartition(": ")[2] for finding in findings(xid, rules, fixture("kernel-bad.log"))]
    assert advice[0] == "drain, then repair or replace it"
    assert advice[-1] == "keep an eye on it"


def test_xids_before_a_repair_no_longer_count(xid, rules, fixture):
    text = fixture("kernel-bad.log")
    assert findings(xid, rules, text, cleared=1760001010.0) == []
    assert [finding.text.split(":")[0] for finding in findings(xid, rules, text, cleared=1760001009.5)] == [
        "NVSwitch 0000"
    ]


@pytest.mark.parametrize(
    ("wording", "action"),
    [("None", "ignore"), ("Drain P2P", "watch"), ("Drain and Reset", "reset"), ("GPU Reset Required", "reset")]
    + [("Node Reboot Required", "reboot"), ("Something New", "watch")],
)
def test_xid_154_is_what_the_driver_asks_for(xid, rules, wording, action):
    line = f"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 ({wording})"
    assert [xid.does(report, rules) for report in xid.parse([line])] == [action]


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("RLW_SRC_TRACK Fatal XC0", "reset"),
        ("NETIR_LINK_DOWN Link Fatal XC0", "reset"),
        ("SAW_MVB Nonfatal XC0", "watch"),
    ]
    + [("SAW_MVB Non-fatal XC0", "watch")],
)
def test_an_nvlink_5_error_follows_its_own_severity(xid, rules, words, action):
    assert [xid.does(report, rules) for report in xid.parse([f"NVRM: Xid (PCI:0000:1b:00): 147, {words}"])] == [action]


def test_an_xid_outside_the_catalogue_is_reported_but_takes_no_host_out_of_service(xid, rules):
    (only,) = findings(xid, rules, "NVRM: Xid (PCI:0000:1b:00): 999, something new")
    assert (only.level, "Xid 999 (not in the catalogue)" in only.text) == ("watch", True)


@pytest.mark.parametrize(
    "line",
    ["kernel: NVRM: GPU 0000:5a:00.0: GPU has fallen off the bus.", "audit: user wrote NVRM: Xid", "", "\x00\xff"]
    + ["NVRM: Xid (PCI:zz:5a:00): 79, GPU", "NVRM: Xid (PCI:0000:5a:00): , nothing"],
)
def test_other_lines_are_not_xids(xid, line):
    assert list(xid.parse([line])) == []


@pytest.mark.parametrize("bus", ["0000:3b:00", "0000:3B:00", "00000000:3B:00.0", "0000:3b:00.0"])
def test_every_notation_of_a_gpus_address_is_normalised(xid, bus):
    assert xid.bus_id(bus) == "0000:3b:00"


def test_every_rule_has_a_known_action_and_the_table_names_its_source(xid, rules):
    actions = {rule["does"] for rule in rules["xids"].values()}
    assert actions <= {*xid.RANK, "by-recovery", "by-severity"}
    assert set(rules["recovery"].values()) <= set(xid.RANK)
    assert "Xid Catalog" in rules["source"]["title"]
    # If NVIDIA's immediate action is a reset or more, ours is never weaker.
    lighter = [
        code
        for code, rule in rules["xids"].items()
        if rule["nvidia"] in ("RESET_GPU", "RESTART_BM", "RESTART_VM", "WORKFLOW_XID_48", "WORKFLOW_NVLINK_ERR")
        and rule["does"] not in ("reset", "reboot", "service")
    ]
    assert lighter == []


def test_the_page_lists_every_relevant_xid_with_its_action(rules):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "preflight.md").read_text()
    documented = {
        row[1]: {*row[2].split(", ")} for row in re.finditer(r"^\| ([a-z-]+) \| (\d+(?:, \d+)*) \|", page, re.MULTILINE)
    }
    expected: dict[str, set[str]] = {}
    for code, rule in rules["xids"].items():
        if rule["does"] != "ignore":
            expected.setdefault(rule["does"], set()).add(code)
    assert documented == expected
