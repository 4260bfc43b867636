"""A host compared with what its kind must have: a healthy one passes, and each fault is named."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def compare(preflight):
    return preflight.compare


def findings(compare, facts, expected):
    return [(finding.reason, finding.level, finding.text) for finding in compare.findings(facts, expected)]


def test_a_healthy_dgx_h100_has_no_findings(compare, facts, expected):
    assert findings(compare, facts, expected) == []
    assert compare.subject(expected) == "dgx-h100 (not compared: links)"


@pytest.mark.parametrize(
    ("fields", "reason", "text"),
    [
        ({"cpus": 112}, "CpuDiffers", "112 logical CPUs, expected 224"),
        ({"sockets": 1}, "CpuDiffers", "1 processors, expected 2"),
        ({"memory_kib": 1_980_000_000}, "MemoryMissing", "1888 GiB of memory, expected 2048 GiB"),
        ({"skew_s": 312.0}, "ClockSkewed", "312 s ahead of the API server's (limit 2 s)"),
        ({"skew_s": -3.0}, "ClockSkewed", "3 s behind the API server's"),
        ({"diagnostic": ("Denylist: x",)}, "DiagnosticFailed", "DCGM: Denylist: x"),
        ({"smi": None, "smi_said": "nvidia-smi is missing"}, "DriverMissing", "nvidia-smi is missing"),
    ],
)
def test_drift_is_named(compare, facts, expected, fields, reason, text):
    ((actual_reason, level, message),) = findings(compare, facts._replace(**fields), expected)
    assert (actual_reason, level) == (reason, "fail")
    assert text in message


def test_a_little_less_memory_is_the_firmwares_share(compare, facts, expected):
    assert findings(compare, facts._replace(memory_kib=int(2048 * 2**20 * 0.96)), expected) == []


def test_a_lost_data_disk_is_found_and_a_system_disk_does_not_replace_it(compare, facts, expected):
    ((reason, _, text),) = findings(compare, facts._replace(disks=facts.disks[:-1]), expected)
    assert (reason, text[:29]) == ("DiskMissing", "7 NVMe disks of 3840 GB (nvme")
    assert text.endswith("expected 8")


def test_a_port_that_is_down_or_slow_is_named(compare, facts, expected):
    ports = list(facts.rdma)
    ports[3] = compare.Port("mlx5_3/1", 0.0, False)
    ports[5] = compare.Port("mlx5_5/1", 200.0)
    ((reason, _, text),) = findings(compare, facts._replace(rdma=tuple(ports)), expected)
    assert reason == "RdmaDown"
    assert text == "6 RDMA ports up with 400 Gbit/s, expected 8; mlx5_3/1 down, mlx5_5/1 200 Gbit/s"


def test_a_gpu_lost_by_the_bus_differs_from_one_lost_only_by_the_driver(compare, preflight, facts, expected):
    gone = facts._replace(pci_gpus=facts.pci_gpus[1:], smi=facts.smi._replace(gpus=facts.smi.gpus[1:]))
    assert [text for _, _, text in findings(compare, gone, expected)] == [
        "7 GPUs on PCI, expected 8: power-cycle the host, then check"
    ]
    lost = facts._replace(smi=facts.smi._replace(gpus=facts.smi.gpus[1:]))
    assert [text for _, _, text in findings(compare, lost, expected)] == [
        "the driver has lost 0000:18:00, which PCI still has"
    ]


@pytest.mark.parametrize(
    ("change", "reason", "text"),
    [
        (
            ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"),
            "GpuDiffers",
            "NVIDIA H100 PCIe, expected NVIDIA H100 80GB HBM3",
        ),
        (("81559 MiB", "40960 MiB"), "GpuDiffers", "40960 MiB of memory, expected 81559"),
        (("<max_link_gen>5", "<max_link_gen>4"), "GpuDiffers", "PCIe generation 4, expected 5"),
        (("<current_link_width>16x", "<current_link_width>8x"), "GpuDiffers", "PCIe lanes 8, expected 16"),
        (("<sm_clock>1980", "<sm_clock>1200"), "GpuDiffers", "MHz at most 1200, expected 1980"),
        (("<current_ecc>Enabled", "<current_ecc>Disabled"), "GpuDiffers", "ECC is off, expected on"),
        (("failure>No<", "failure>Yes<"), "GpuFaulty", "a memory row could not be remapped: replace it"),
        (("exceeded>No<", "exceeded>Yes<"), "GpuFaulty", "SRAM errors than its threshold: replace it"),
        (("pending>No<", "pending>Yes<"), "GpuFaulty", "waits to be remapped: drain, then reset the GPU"),
        (("action>None<", "action>Reset<"), "GpuFaulty", "the driver asks for: Reset"),
        (("<state>Completed", "<state>In Progress"), "GpuFaulty", "is nvidia-fabricmanager running"),
        (("brake_slowdown>Not Active", "brake_slowdown>Active"), "GpuSlowed", "hw_power_brake_slowdown"),
    ],
)
def test_a_gpu_that_is_not_as_expected_is_named_by_its_address(
    compare, preflight, smi_xml, facts, expected, change, reason, text
):
    changed = facts._replace(smi=preflight.smi.parse(smi_xml(change)))
    ((actual_reason, level, message),) = findings(compare, changed, expected)
    assert (actual_reason, level) == (reason, "fail")
    assert message.startswith("GPU 0000:3a:00: ")
    assert text in message


def test_a_value_that_the_driver_does_not_report_is_no_fault(compare, preflight, smi_xml, facts, expected):
    silent = smi_xml(("<current_ecc>Enabled", "<current_ecc>N/A"), ("<max_link_gen>5", "<max_link_gen>N/A"))
    assert findings(compare, facts._replace(smi=preflight.smi.parse(silent)), expected) == []


def test_a_thermal_slowdown_takes_no_host_out_of_service(compare, preflight, smi_xml, facts, expected):
    hot = smi_xml(("thermal_slowdown>Not Active", "thermal_slowdown>Active"))
    ((reason, level, _),) = findings(compare, facts._replace(smi=preflight.smi.parse(hot)), expected)
    assert (reason, level) == ("GpuSlowed", "watch")


def test_a_driver_of_another_branch_is_named(compare, facts, expected):
    expected["gpus"]["driver_branch"] = "580"
    assert findings(compare, facts, expected) == [("DriverDiffers", "fail", "driver 575.51.02, expected branch 580")]


def test_a_link_that_is_down_is_found_by_its_speed_and_by_the_matrix(compare, facts, expected):
    slow = {**facts.nvlinks, 4: [26.562] * 17 + [0.0]}
    ((reason, _, text),) = findings(compare, facts._replace(nvlinks=slow), expected)
    assert (reason, text) == ("NvlinkDown", "GPU 0000:9a:00: 17 NVLinks at 26.562 GB/s, expected 18")
    apart = {**facts.topology, (0, 5): "SYS", (5, 0): "SYS"}
    ((reason, _, text),) = findings(compare, facts._replace(topology=apart), expected)
    assert (reason, text) == ("NvlinkDown", "1 pairs of GPUs not joined by NV18: GPU 0 and 5 by SYS")


def test_mig_turns_nvlink_off_without_a_fault(compare, preflight, smi_xml, facts, expected):
    cut = smi_xml(("<current_mig>Disabled", "<current_mig>Enabled"))
    assert findings(compare, facts._replace(smi=preflight.smi.parse(cut), nvlinks={}, topology={}), expected) == []


def test_a_host_without_expectations_only_has_its_clock_checked(compare, facts):
    assert [finding.level for finding in compare.findings(facts, {})] == ["watch"]  # its GPUs, which were not expected
    assert compare.findings(facts._replace(pci_gpus=()), {}) == []
    assert [finding.reason for finding in compare.findings(facts._replace(pci_gpus=(), skew_s=9.0), {})] == [
        "ClockSkewed"
    ]


def test_a_host_without_gpus_fails_if_its_kind_has_some(compare, facts, expected):
    bare = facts._replace(pci_gpus=(), smi=None, smi_said="nvidia-smi: nvidia-smi is missing", nvlinks={}, topology={})
    assert [reason for reason, _, _ in findings(compare, bare, expected)] == ["GpuMissing", "DriverMissing"]
