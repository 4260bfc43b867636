"""Metrics of NVIDIA's GPUs from `nvidia-smi -q -x`. Pure.

Elements were renamed with drivers: `power_readings` until 525, `gpu_power_readings` since, with an average and a present value
from 565; `clocks_throttle_reasons` until 530. A value may be missing or N/A; then its metric is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from . import Sample, Unanswered

MIB = 1 << 20
_POWER = (
    "gpu_power_readings/average_power_draw",
    "gpu_power_readings/power_draw",
    "power_readings/power_draw",
)
# Metric -> where its value may be, and what one of its unit is.
_NUMBERS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "gpu_busy_ratio": (("utilization/gpu_util",), 0.01),
    "gpu_memory_used_bytes": (("fb_memory_usage/used",), MIB),
    "gpu_memory_bytes": (("fb_memory_usage/total",), MIB),
    "gpu_power_watts": (_POWER, 1),
    "gpu_temperature_celsius": (("temperature/gpu_temp",), 1),
    "gpu_memory_temperature_celsius": (("temperature/memory_temp",), 1),
    "gpu_clock_hertz": (("clocks/sm_clock",), 1e6),
    "gpu_remapped_rows": (("remapped_rows/remapped_row_unc",), 1),
}
_SLOWED = ("hw_thermal_slowdown", "hw_power_brake_slowdown")


def uuids(xml: str) -> dict[str, str]:
    """Return the UUID of each GPU -> its number, as `nvidia-smi -L` counts them."""
    return {uuid: str(number) for number, gpu in enumerate(_gpus(xml)) if (uuid := _text(gpu, "uuid"))}


def samples(xml: str) -> Iterator[Sample]:
    """Yield the metrics of all GPUs. Raises Unanswered for anything but nvidia-smi's XML."""
    driver = _root(xml).findtext("driver_version") or ""
    for number, gpu in enumerate(_gpus(xml)):
        own = ("gpu", str(number))
        what = (own, ("uuid", _text(gpu, "uuid")), ("product", _text(gpu, "product_name")), ("driver", driver))
        yield Sample("gpu_info", 1, what)
        for name, (places, unit) in _NUMBERS.items():
            value = next((value for place in places if (value := _number(gpu, place)) is not None), None)
            if value is not None:
                yield Sample(name, value * unit, (own,))
        if failed := _text(gpu, "remapped_rows/remapped_row_failure"):
            yield Sample("gpu_remap_failed", failed == "Yes", (own,))
        if (slowed := _slowed(gpu)) is not None:
            yield Sample("gpu_slowed", slowed, (own,))


def _root(xml: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise Unanswered(f"nvidia-smi -q -x gave no XML: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise Unanswered(f"nvidia-smi -q -x gave <{root.tag}>")
    return root


def _gpus(xml: str) -> list[ElementTree.Element]:
    return _root(xml).findall("gpu")


def _text(gpu: ElementTree.Element, path: str) -> str:
    """Return an element's text, "" if it says nothing."""
    text = (gpu.findtext(path) or "").strip()
    return "" if text in ("N/A", "[N/A]") or "deprecated" in text else text


def _number(gpu: ElementTree.Element, path: str) -> float | None:
    match = re.match(r"\d+(\.\d+)?", _text(gpu, path))
    return float(match[0]) if match else None


def _slowed(gpu: ElementTree.Element) -> bool | None:
    """Return whether the hardware slows the GPU down; None if nothing says so."""
    for parent in ("clocks_event_reason", "clocks_throttle_reason"):
        words = [_text(gpu, f"{parent}s/{parent}_{reason}") for reason in _SLOWED]
        if any(words):
            return "Active" in words
    return None
