"""The edge: a tree of /sys and /proc, and programs with recorded output."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def tree(tmp_path, preflight):
    """Return a host whose put(path, text) writes one of its files."""

    class Here(preflight.host.Host):
        def put(self, path, text=""):
            target = tmp_path / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text + "\n")

        said: dict = {}  # noqa: RUF012

        def run(self, words, timeout_s=60):
            return self.said.get(" ".join(words), (127, f"{words[0]} is missing"))

        def lines(self, words):
            return iter(self.said.get(words[0], (0, ""))[1].splitlines())

    host = Here(str(tmp_path))
    host.said = {}
    return host


@pytest.fixture
def small(tree):
    """Return a host with two CPUs of two cores each, a disk, a card, an RDMA port, and one GPU without a driver."""
    for cpu, package in enumerate("0011"):
        tree.put(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", package)
    tree.put("/sys/devices/system/cpu/online", "0-1,3-4")
    tree.put("/proc/meminfo", "MemTotal:       65842316 kB\nMemFree:         1234 kB")
    for name, sectors in {
        "nvme0n1": 7501476528,
        "nvme0c0n1": 7501476528,
        "sda": 937703088,
        "loop0": 8,
        "md0": 9,
    }.items():
        tree.put(f"/sys/block/{name}/size", str(sectors))
    for name, kind, speed, state in (
        ("eno1", "1", "25000", "up"),
        ("eno2", "1", "-1", "down"),
        ("cni0", "1", "10000", "up"),
    ):
        for file, text in {"type": kind, "speed": speed, "operstate": state}.items():
            tree.put(f"/sys/class/net/{name}/{file}", text)
        if name != "cni0":
            tree.put(f"/sys/class/net/{name}/device/vendor", "0x15b3")
    for file, text in {"rate": "400 Gb/sec (4X NDR)", "state": "4: ACTIVE"}.items():
        tree.put(f"/sys/class/infiniband/mlx5_0/ports/1/{file}", text)
        tree.put(f"/sys/class/infiniband/mlx5_1/ports/1/{file}", text.replace("4: ACTIVE", "1: DOWN"))
    for bus, vendor, kind in (
        ("0000:18:00.0", "0x10de", "0x030200"),
        ("0000:19:00.0", "0x10de", "0x068000"),  # an NVSwitch
        ("0000:1a:00.0", "0x1a03", "0x030000"),  # the BMC's display
    ):
        tree.put(f"/sys/bus/pci/devices/{bus}/vendor", vendor)
        tree.put(f"/sys/bus/pci/devices/{bus}/class", kind)
    return tree


def test_a_host_is_read_from_the_kernel(preflight, small):
    compare = preflight.compare
    assert preflight.host.facts(small, {}, 0.5, True) == compare.Facts(
        sockets=2,
        cpus=4,
        memory_kib=65842316,
        disks=(compare.Disk("nvme0n1", 3840755982336, True), compare.Disk("sda", 480103981056, False)),
        links=(compare.Port("eno1", 25.0, True), compare.Port("eno2", 0.0, False)),
        rdma=(compare.Port("mlx5_0/1", 400.0, True), compare.Port("mlx5_1/1", 400.0, False)),
        pci_gpus=("0000:18:00",),
        skew_s=0.5,
    )


def test_virtual_functions_are_not_cards(preflight, small):
    small.put("/sys/class/net/eno2/device/physfn/vendor", "0x15b3")
    assert [port.name for port in preflight.host.links(small)] == ["eno1"]


def test_nvidia_smi_runs_only_if_a_gpu_is_expected(preflight, small, expected):
    small.said = {"nvidia-smi -q -x": (0, "rubbish")}
    assert preflight.host.facts(small, {}, 0.0, True).smi_said == ""
    assert "gave no XML" in preflight.host.facts(small, expected, 0.0, True).smi_said


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((127, "nvidia-smi is missing"), "nvidia-smi is missing"),
        ((9, "NVIDIA-SMI has failed because it couldn't communicate\nwith the NVIDIA driver."), "communicate with the"),
        ((124, "nvidia-smi did not answer in 60 s"), "did not answer in 60 s"),
    ],
)
def test_a_driver_that_does_not_answer_is_reported_with_its_own_message(preflight, small, expected, answer, text):
    small.said = {"nvidia-smi -q -x": answer}
    facts = preflight.host.facts(small, expected, 0.0, True)
    assert (facts.smi, text in facts.smi_said) == (None, True)


def test_gpus_are_read_from_nvidia_smi_and_diagnosed_only_while_idle(preflight, small, expected, smi_xml, fixture):
    small.said = {
        "nvidia-smi -q -x": (0, smi_xml()),
        "nvidia-smi nvlink --status": (0, fixture("nvlink-status.txt").replace("@N@", "0")),
        "nvidia-smi topo -m": (0, fixture("topo.txt")),
        "dcgmi diag --run 1 --json": (226, fixture("dcgm-fail.json")),
    }
    idle = preflight.host.facts(small, expected, 0.0, True)
    busy = preflight.host.facts(small, expected, 0.0, False)
    assert (len(idle.smi.gpus), len(idle.nvlinks[0]), len(idle.topology)) == (8, 18, 56)
    assert busy.diagnostic == ()
    assert idle.diagnostic == (
        (
            "Page Retirement/Row Remap: GPU 0 has uncorrectable memory errors and row remappings are pending. "
            "Verify that the GPU is reset."
        ),
    )


def test_a_passing_or_missing_diagnostic_has_no_findings(preflight, tree, fixture):
    assert list(preflight.host.diagnostic(tree)) == []
    tree.said = {"dcgmi diag --run 1 --json": (0, fixture("dcgm-pass.json"))}
    assert list(preflight.host.diagnostic(tree)) == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((1, "Error: unable to establish a connection"), "exited with 1: Error: unable"),
        ((124, "dcgmi did not answer"), "not answer"),
    ],
)
def test_a_diagnostic_that_could_not_run_is_reported(preflight, tree, answer, text):
    tree.said = {"dcgmi diag --run 1 --json": answer}
    (only,) = preflight.host.diagnostic(tree)
    assert text in only


def test_a_newer_format_of_the_diagnostic_is_read_too(preflight):
    newer = {"tests": [{"name": "software", "results": [{"entity_id": 3, "status": "Fail", "info": ["a", "b"]}]}]}
    assert list(preflight.host.failures(newer)) == ["software: a b"]


def test_xids_come_from_the_log_of_this_boot_and_the_mark_is_a_files_time(preflight, tree, fixture):
    tree.said = {"journalctl": (0, fixture("kernel-bad.log"))}
    assert len(list(preflight.host.kernel_log(tree))) == 10
    assert preflight.host.cleared(tree) == 0.0
    tree.put(preflight.host.CLEARED)
    os.utime(tree.at(preflight.host.CLEARED), (1760001005, 1760001005))
    assert preflight.host.cleared(tree) == 1760001005.0


def test_real_programs_run_and_their_outcomes_are_distinguished(preflight):
    host = preflight.host.Host()
    assert host.run([sys.executable, "-c", "print('yes')"]) == (0, "yes\n")
    assert host.run(["no-such-program"]) == (127, "no-such-program is missing")
    assert host.run([sys.executable, "-c", "import time; time.sleep(9)"], timeout_s=0.2)[0] == 124
    assert list(host.lines([sys.executable, "-c", "print('a'); print('b')"])) == ["a\n", "b\n"]
    assert list(host.lines(["no-such-program"])) == []


def test_a_check_follows_the_settings(preflight, small, expected):
    main = sys.modules["menagerie_preflight.__main__"]
    small.put(preflight.host.SETTINGS, json.dumps({"expected": {"kind": "small", "cpus": 8, "memory_gib": 512}}))
    findings, subject = main.checked(small, 0.0, True)
    assert [(finding.check, finding.level) for finding in findings] == [
        ("cpu", "fail"),
        ("memory", "fail"),
        ("gpus", "watch"),
    ]
    assert subject == "small (not compared: disks, links, RDMA, GPUs)"
    settings = {"expected": {"kind": "small", "cpus": 8, "memory_gib": 512}, "only_watched": ["memory"]}
    small.put(preflight.host.SETTINGS, json.dumps(settings))
    findings, _ = main.checked(small, 0.0, True)
    assert [(finding.check, finding.level) for finding in findings] == [
        ("cpu", "fail"),
        ("memory", "watch"),
        ("gpus", "watch"),
    ]


def test_an_unknown_check_can_not_be_left_out(preflight, small):
    main = sys.modules["menagerie_preflight.__main__"]
    small.put(preflight.host.SETTINGS, json.dumps({"only_watched": ["gpu", "xid"]}))
    with pytest.raises(preflight.Unknown, match="no check is called gpu; there are cpu, memory"):
        main.checked(small, 0.0, True)


def test_the_role_accepts_the_names_of_the_checks(preflight):
    spec = yaml.safe_load((Path(preflight.__file__).parents[2] / "meta" / "argument_specs.yml").read_text())
    options = spec["argument_specs"]["main"]["options"]
    assert tuple(options["preflight_only_watched"]["choices"]) == preflight.CHECKS


def test_every_finding_belongs_to_a_named_check(preflight):
    files = sorted(Path(preflight.__file__).parent.glob("*.py"))
    named = {name for file in files for name in re.findall(r'Finding\(\s*"(\w+)"', file.read_text())}
    assert named | {"links", "rdma"} == set(preflight.CHECKS)


def test_xids_are_checked_only_on_hosts_with_a_gpu(preflight, small, fixture):
    main = sys.modules["menagerie_preflight.__main__"]
    small.said = {"journalctl": (0, fixture("kernel-bad.log"))}
    assert "xid" in {finding.check for finding in main.checked(small, 0.0, True)[0]}
    for name in os.listdir(small.at("/sys/bus/pci/devices")):
        small.put(f"/sys/bus/pci/devices/{name}/vendor", "0x8086")
    assert main.checked(small, 0.0, True)[0] == []


def test_the_page_lists_every_reason_of_the_condition(preflight):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "preflight.md").read_text()
    text = "".join(file.read_text() for file in Path(preflight.__file__).parent.glob("*.py"))
    # Checks that are only watched have no reason, and DaemonSet is not one.
    others = {preflight.CONDITION, "GpuUnexpected", "DaemonSet"}
    reasons = set(re.findall(r'"([A-Z][a-z]+[A-Z][A-Za-z]+)"', text)) - others
    assert {"GpuMissing", "XidReported", "CheckFailed", "AsExpected"} < reasons
    assert {reason for reason in reasons if reason not in page} == set()
