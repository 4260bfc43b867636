"""Metrics of GPUs, from recorded outputs of nvidia-smi. smi/README.md says whose."""

from __future__ import annotations

from pathlib import Path

import pytest
from menagerie_node_metrics import METRICS, Unanswered, gpus

RECORDED = Path(__file__).parent / "smi"
OF_ONE = {
    "t4": {
        "gpu_busy_ratio": 0,
        "gpu_memory_used_bytes": 1032 << 20,
        "gpu_memory_bytes": 15360 << 20,
        "gpu_power_watts": 26.78,
        "gpu_temperature_celsius": 40,
        "gpu_clock_hertz": 585e6,
        "gpu_slowed": 0,
    },
    "a100-mig": {
        "gpu_memory_used_bytes": 50 << 20,
        "gpu_memory_bytes": 81920 << 20,
        "gpu_power_watts": 67.03,
        "gpu_temperature_celsius": 27,
        "gpu_memory_temperature_celsius": 44,
        "gpu_clock_hertz": 1275e6,
        "gpu_slowed": 0,
    },
    "rtx-pro-6000": {
        "gpu_busy_ratio": 0,
        "gpu_memory_used_bytes": 65720 << 20,
        "gpu_memory_bytes": 97887 << 20,
        "gpu_power_watts": 3.97,
        "gpu_temperature_celsius": 24,
        "gpu_clock_hertz": 180e6,
        "gpu_remapped_rows": 0,
        "gpu_remap_failed": 0,
        "gpu_slowed": 0,
    },
}


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.xml").read_text()


def several(name: str, number: int) -> str:
    """Return a recorded output with its GPU several times, each with a UUID of its own."""
    head, _, rest = recorded(name).partition("\t<gpu id=")
    gpu, _, tail = rest.rpartition("</gpu>\n")
    each = (f"\t<gpu id={gpu}</gpu>\n".replace("<uuid>GPU-", f"<uuid>GPU-{index}") for index in range(number))
    return f"{head}{''.join(each)}{tail}"


@pytest.mark.parametrize("name", OF_ONE)
def test_values_of_every_form_of_the_output_are_read_and_unknown_ones_are_missing(name: str) -> None:
    read = {sample.name: sample.value for sample in gpus.samples(recorded(name)) if sample.name != "gpu_info"}
    assert read == pytest.approx(OF_ONE[name])


def test_what_a_gpu_is_has_labels_and_all_else_only_its_number() -> None:
    (info,) = [sample for sample in gpus.samples(recorded("t4")) if sample.name == "gpu_info"]
    assert dict(info.labels) == {
        "gpu": "0",
        "uuid": "GPU-d37e67a5-91dd-3774-a5cb-99096249601a",
        "product": "Tesla T4",
        "driver": "515.105.01",
    }
    assert {sample.labels for sample in gpus.samples(recorded("t4")) if sample.name != "gpu_info"} == {(("gpu", "0"),)}


def test_gpus_are_counted_in_the_order_of_the_output() -> None:
    text = several("rtx-pro-6000", 8)
    assert sorted(gpus.uuids(text).values()) == list("01234567")
    power = [sample.labels for sample in gpus.samples(text) if sample.name == "gpu_power_watts"]
    assert power == [(("gpu", str(number)),) for number in range(8)]


@pytest.mark.parametrize(
    ("name", "before", "after", "metric", "value"),
    [
        ("rtx-pro-6000", "<remapped_row_unc>0", "<remapped_row_unc>3", "gpu_remapped_rows", 3),
        ("rtx-pro-6000", "<remapped_row_failure>No", "<remapped_row_failure>Yes", "gpu_remap_failed", 1),
        ("rtx-pro-6000", "hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active", "gpu_slowed", 1),
        ("t4", "hw_power_brake_slowdown>Not Active", "hw_power_brake_slowdown>Active", "gpu_slowed", 1),
        ("t4", "<gpu_util>0 %", "<gpu_util>97 %", "gpu_busy_ratio", 0.97),
    ],
)
def test_a_fault_and_a_load_show(name: str, before: str, after: str, metric: str, value: float) -> None:
    changed = recorded(name).replace(before, after)
    assert changed != recorded(name)
    assert {sample.value for sample in gpus.samples(changed) if sample.name == metric} == {value}


@pytest.mark.parametrize(
    "text", ["", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "<html></html>"]
)
def test_anything_else_is_no_answer(text: str) -> None:
    with pytest.raises(Unanswered, match=r"nvidia-smi -q -x gave (no XML|<html>)"):
        list(gpus.samples(text))


def test_every_metric_of_gpus_is_declared() -> None:
    assert {sample.name for name in OF_ONE for sample in gpus.samples(recorded(name))} <= set(METRICS)
