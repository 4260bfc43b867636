"""The check as on hosts, and a DGX H100 in recorded formats."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "roles" / "preflight" / "files"
FIXTURES = Path(__file__).parent / "fixtures"
BUSES = tuple(f"0000:{bus}:00" for bus in ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db"))


@pytest.fixture(scope="session", autouse=True)
def preflight() -> Iterator[ModuleType]:
    """Import the package under the name that it has on a host."""
    import importlib

    sys.path.insert(0, str(FOLDER))
    try:
        package = importlib.import_module("menagerie_preflight")
        for name in ("xid", "smi", "compare", "host", "node", "__main__"):
            importlib.import_module(f"menagerie_preflight.{name}")
        yield package
    finally:
        sys.path.remove(str(FOLDER))
        for name in [name for name in sys.modules if name.startswith("menagerie_preflight")]:
            del sys.modules[name]


@pytest.fixture(scope="session")
def fixture() -> Callable[[str], str]:
    return lambda name: (FIXTURES / name).read_text()


@pytest.fixture(scope="session")
def smi_xml(fixture: Callable[[str], str]) -> Callable[..., str]:
    """Return a function that returns `nvidia-smi -q -x` of 8 GPUs, with text replacements (old, new) in the third."""

    def made(*changes: tuple[str, str], buses: tuple[str, ...] = BUSES) -> str:
        gpus = [fixture("gpu.xml").replace("@BUS@", f"0000{bus.upper()}.0") for bus in buses]
        for old, new in changes:
            assert old in gpus[2], old
            gpus[2] = gpus[2].replace(old, new)
        head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        return f"{head}\t<driver_version>575.51.02</driver_version>\n{''.join(gpus)}</nvidia_smi_log>\n"

    return made


@pytest.fixture
def expected() -> dict[str, Any]:
    """Return what role preflight expects of a DGX H100."""
    from cluster import hardware

    hardware_: dict[str, Any] = json.loads(hardware.of_kind("dgx-h100", "575").model_dump_json(exclude_none=True))
    return hardware_


@pytest.fixture
def facts(preflight: ModuleType, smi_xml: Callable[..., str], fixture: Callable[[str], str]) -> Any:
    """Return the facts of a healthy DGX H100."""
    compare, smi = preflight.compare, preflight.smi  # type: ignore[attr-defined]
    data = [compare.Disk(f"nvme{n}n1", 3_840_755_982_336, True) for n in range(2, 10)]
    system = [compare.Disk(f"nvme{n}n1", 1_920_383_410_176, True) for n in range(2)]
    status = "".join(fixture("nvlink-status.txt").replace("@N@", str(n)) for n in range(8))
    return compare.Facts(
        sockets=2,
        cpus=224,
        memory_kib=2_113_400_000,
        disks=(*system, *data),
        links=(compare.Port("eno1", 10.0),),
        rdma=tuple(compare.Port(f"mlx5_{n}/1", 400.0) for n in range(8)),
        pci_gpus=BUSES,
        smi=smi.parse(smi_xml()),
        nvlinks=smi.nvlinks(status),
        topology=smi.topology(fixture("topo.txt")),
        skew_s=0.0,
    )
