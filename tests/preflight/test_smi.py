"""Output of nvidia-smi, in recorded formats."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def smi(preflight):
    return preflight.smi


def test_a_gpu_is_parsed_from_nvidia_smi(smi, smi_xml):
    read = smi.parse(smi_xml())
    assert (read.driver, len(read.gpus)) == ("575.51.02", 8)
    assert read.gpus[0] == smi.Gpu(
        number=0,
        bus="0000:18:00",
        product="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        pcie_gen=5,
        pcie_width=16,
        sm_mhz=1980,
        memory_mhz=2619,
        ecc=True,
        mig=False,
        fabric="Completed Success",
    )


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("pending>No</remapped_row_p", "pending>Yes</remapped_row_p", "remap_pending", True),
        ("failure>No<", "failure>Yes<", "remap_failed", True),
        ("exceeded>No<", "exceeded>Yes<", "sram_exceeded", True),
        ("action>None<", "action>Node Reboot Required<", "recovery", "Node Reboot Required"),
        ("current_ecc>Enabled", "current_ecc>Disabled", "ecc", False),
        ("current_ecc>Enabled", "current_ecc>N/A", "ecc", None),
        ("<total>81559 MiB</total>", "<total>N/A</total>", "memory_mib", None),
        ("<state>Completed</state>", "<state>In Progress</state>", "fabric", "In Progress Success"),
        ("thermal_slowdown>Not Active", "thermal_slowdown>Active", "slowdown", ("hw_thermal_slowdown",)),
    ],
)
def test_a_fault_is_parsed(smi, smi_xml, old, new, field, value):
    third = smi.parse(smi_xml((old, new))).gpus[2]
    assert getattr(third, field) == value


def test_older_drivers_use_another_name_for_slowdown_reasons(smi, smi_xml):
    older = smi_xml(("thermal_slowdown>Not Active", "thermal_slowdown>Active")).replace("_event_", "_throttle_")
    assert smi.parse(older).gpus[2].slowdown == ("hw_thermal_slowdown",)


@pytest.mark.parametrize("text", ["", "No devices were found\n", "<nvidia_smi_log><gpu>", "<html></html>"])
def test_anything_but_its_xml_is_refused(smi, text):
    with pytest.raises(ValueError, match="nvidia-smi -q -x gave"):
        smi.parse(text)


def test_links_are_parsed_and_an_inactive_one_has_no_speed(smi, fixture):
    text = fixture("nvlink-status.txt").replace("@N@", "3").replace("Link 17: 26.562 GB/s", "Link 17: <inactive>")
    assert smi.nvlinks(text) == {3: [26.562] * 17 + [0.0]}
    assert smi.nvlinks("Device does not have or support Nvlink\n") == {}


def test_connections_between_gpus_are_parsed_from_the_matrix(smi, fixture):
    joined = smi.topology(fixture("topo.txt"))
    assert len(joined) == 8 * 7
    assert set(joined.values()) == {"NV18"}
    assert smi.topology("no GPU found") == {}
