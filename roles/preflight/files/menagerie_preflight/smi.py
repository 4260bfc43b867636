"""Parse nvidia-smi's outputs. Pure.

Every field may be missing or N/A: drivers rename fields, and GPUs lack some.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree

from .xid import bus_id


class Gpu(NamedTuple):
    """A GPU as `nvidia-smi -q -x` describes it. None: unknown."""

    number: int
    bus: str
    product: str
    memory_mib: int | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    ecc: bool | None = None
    mig: bool | None = None
    remap_pending: bool = False
    remap_failed: bool = False
    sram_exceeded: bool = False
    recovery: str = "None"
    slowdown: tuple[str, ...] = ()
    fabric: str | None = None
    """State and status of an NVSwitch fabric: "Completed Success" if it is healthy."""


class Smi(NamedTuple):
    driver: str
    gpus: tuple[Gpu, ...]


def parse(xml: str) -> Smi:
    """Parse the output of `nvidia-smi -q -x`. ValueError for anything else."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"nvidia-smi -q -x gave no XML: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise ValueError(f"nvidia-smi -q -x gave <{root.tag}>")
    gpus = tuple(_gpu(index, node) for index, node in enumerate(root.findall("gpu")))
    return Smi(_text(root, "driver_version") or "", gpus)


def _gpu(index: int, node: ElementTree.Element) -> Gpu:
    link = "pci/pci_gpu_link_info"
    return Gpu(
        number=index,
        bus=bus_id(node.get("id") or _text(node, "pci/pci_bus_id") or "0:0:0"),
        product=_text(node, "product_name") or "",
        memory_mib=_number(node, "fb_memory_usage/total"),
        # An idle link uses a lower generation, so compare the highest one that both ends support.
        pcie_gen=_number(node, f"{link}/pcie_gen/max_link_gen"),
        pcie_width=_number(node, f"{link}/link_widths/current_link_width"),
        sm_mhz=_number(node, "max_clocks/sm_clock"),
        memory_mhz=_number(node, "max_clocks/mem_clock"),
        ecc=_is(node, "ecc_mode/current_ecc", "Enabled"),
        mig=_is(node, "mig_mode/current_mig", "Enabled"),
        remap_pending=bool(_is(node, "remapped_rows/remapped_row_pending", "Yes")),
        remap_failed=bool(_is(node, "remapped_rows/remapped_row_failure", "Yes")),
        sram_exceeded=bool(_is(node, "ecc_errors/aggregate/sram_threshold_exceeded", "Yes")),
        recovery=_text(node, "gpu_recovery_action") or "None",
        slowdown=_slowdown(node),
        fabric=_fabric(node),
    )


def _text(node: ElementTree.Element, path: str) -> str | None:
    text = (node.findtext(path) or "").strip()
    return None if text in ("", "N/A", "[N/A]") or "deprecated" in text else text


def _number(node: ElementTree.Element, path: str) -> int | None:
    match = re.match(r"(\d+)", _text(node, path) or "")
    return int(match[1]) if match else None


def _is(node: ElementTree.Element, path: str, word: str) -> bool | None:
    text = _text(node, path)
    return None if text is None else text == word


def _slowdown(node: ElementTree.Element) -> tuple[str, ...]:
    """Return why the hardware throttles clocks. clocks_throttle_reasons until R535, clocks_event_reasons since."""
    words = ("hw_thermal_slowdown", "hw_power_brake_slowdown")
    for parent, prefix in (
        ("clocks_event_reasons", "clocks_event_reason"),
        ("clocks_throttle_reasons", "clocks_throttle_reason"),
    ):
        if node.find(parent) is not None:
            return tuple(word for word in words if _is(node, f"{parent}/{prefix}_{word}", "Active"))
    return ()


def _fabric(node: ElementTree.Element) -> str | None:
    state, status = _text(node, "fabric/state"), _text(node, "fabric/status")
    return " ".join(word for word in (state, status) if word) or None


def nvlinks(text: str) -> dict[int, list[float]]:
    """Parse `nvidia-smi nvlink --status`: GPU -> GB/s of each of its links, 0 for a link that is down."""
    by_gpu: dict[int, list[float]] = {}
    links: list[float] = []
    for line in text.splitlines():
        head = re.match(r"GPU (\d+):", line)
        if head:
            links = by_gpu.setdefault(int(head[1]), [])
        link = re.match(r"\s+Link \d+: (?:([\d.]+) GB/s|(<inactive>|\S+))", line)
        if link:
            links.append(float(link[1] or 0))
    return by_gpu


def topology(text: str) -> dict[tuple[int, int], str]:
    """Parse `nvidia-smi topo -m`: (GPU, other GPU) -> their connection, such as NV18, PIX or SYS."""
    # The heading is underlined with escapes, also in a pipe.
    rows = [re.sub(r"\x1b\[\d*m", "", line).split() for line in text.splitlines()]
    heads = next((row for row in rows if row and row[0] == "GPU0" and "X" not in row), [])
    columns = [word for word in heads if re.fullmatch(r"GPU\d+|NIC\d+|mlx5_\S+", word)]
    joined = {}
    for row in rows:
        if not row or not re.fullmatch(r"GPU\d+", row[0]) or row == heads:
            continue
        for column, cell in zip(columns, row[1:]):
            if column.startswith("GPU") and column != row[0]:
                joined[int(row[0][3:]), int(column[3:])] = cell
    return joined
