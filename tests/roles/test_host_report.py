"""What a machine's firmware and boot loader decide, read from trees like sysfs."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles" / "hardening" / "files" / "menagerie_host_report.py"


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("menagerie_host_report", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def space(control):
    """Return a configuration space: error reporting first, then ACS with this control register."""
    config = bytearray(4096)
    struct.pack_into("<I", config, 0x100, 0x0001 | 1 << 16 | 0x150 << 20)
    struct.pack_into("<IHH", config, 0x150, 0x000D | 1 << 16, 0x1F, control)
    return bytes(config)


@pytest.fixture
def machine(tmp_path):
    """Return a function that makes a machine with two NUMA nodes, a bridge, a GPU and a card."""

    def made(control=0, kind="identity", gpu_node=0, governor="performance"):
        devices = tmp_path / "bus/pci/devices"
        for name, number, node, config in (
            ("0000:17:00.0", "0x060400", 0, space(control)),
            ("0000:1a:00.0", "0x030200", gpu_node, b"\0" * 64),
            ("0000:1b:00.0", "0x020000", 0, b"\0" * 64),
            ("0000:00:1f.0", "0x060100", 0, space(0x1F)),
        ):
            (devices / name).mkdir(parents=True)
            (devices / name / "class").write_text(number + "\n")
            (devices / name / "numa_node").write_text(f"{node}\n")
            (devices / name / "config").write_bytes(config)
        for node, cpus in ((0, "0-47"), (1, "48-95"), (10, "")):
            (tmp_path / f"devices/system/node/node{node}").mkdir(parents=True)
            (tmp_path / f"devices/system/node/node{node}/cpulist").write_text(cpus + "\n")
        (tmp_path / "kernel/iommu_groups/0").mkdir(parents=True)
        (tmp_path / "kernel/iommu_groups/0/type").write_text(kind + "\n")
        (tmp_path / "devices/system/cpu/cpu0/cpufreq").mkdir(parents=True)
        (tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text(governor + "\n")
        (tmp_path / "cmdline").write_text("quiet iommu=pt pci=realloc console=ttyS0\n")
        return tmp_path, tmp_path / "cmdline"

    return made


def test_a_well_configured_machine_is_reported_with_its_facts(program, machine):
    report = program.report(*machine())
    assert report["slow"] == []
    assert report["numa"] == {"node0": "0-47", "node1": "48-95", "node10": ""}
    assert report["boot"] == ["iommu=pt", "pci=realloc"]
    assert report["devices"] == {
        "0000:1a:00.0": {"kind": "gpu", "node": 0},
        "0000:1b:00.0": {"kind": "network", "node": 0},
    }


@pytest.mark.parametrize(
    ("set_up", "reason"),
    [
        ({"control": 0x1D}, "ACS sends writes between GPUs and cards through the root complex, at 1 bridges"),
        ({"kind": "DMA-FQ"}, "kernel.iommu: passthrough"),
        ({"gpu_node": -1}, "doesn't say which NUMA node"),
        ({"governor": "powersave"}, "CPUs run under powersave"),
    ],
)
def test_each_cause_of_slow_gpus_is_one_sentence(program, machine, set_up, reason):
    (line,) = program.report(*machine(**set_up))["slow"]
    assert reason in line


@pytest.mark.parametrize("control", [0x01, 0x11])
def test_acs_that_only_validates_sources_or_forwards_redirects_nothing(program, machine, control):
    """With pci=disable_acs_redir, the kernel reduces its own 0x1D to 0x11."""
    assert program.report(*machine(control=control))["acs_redirects"] == {}


def test_a_configuration_space_truncated_for_non_root_has_no_acs(program):
    assert program.acs(b"\0" * 64) is None
    assert program.acs(space(0x1D)) == 0x1D


def test_this_machine_can_be_reported(program):
    assert program.report()["numa"] is not None
