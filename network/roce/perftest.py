"""ib_write_bw of perftest: its command line and its output.

The formats are those of perftest_parameters.h and perftest_parameters.c (linux-rdma/perftest): a header with the unit and a row
per message size, or a JSON document with --out_json. BW peak is 0.00 if -D sets a duration instead of a number of messages.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

PROGRAM = "ib_write_bw"
PORT = 18515
"""perftest's default TCP port, over which two hosts agree on parameters before a measurement."""
_MEBIBYTE = 8 * 2**20 / 1e9
"""perftest's MB and MiB are both 2**20 bytes."""

_HEADER = re.compile(r"#bytes.*BW average\[(Gb|MB|MiB)/sec\]")
_ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+[\d.]+", re.MULTILINE)
_MTU = re.compile(r"^\s*Mtu\s*:\s*(\d+)\[B\]", re.MULTILINE)

# Output of perftest or the shell -> its meaning. The first match counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"Couldn't connect to \S+", "the hosts can't reach each other on TCP port {port}; check firewalls"),
    (r"command not found|No such file or directory", f"{PROGRAM} is not installed: install perftest"),
    (r"IB device \S+ not found|Unable to find the Infiniband", "there is no such RDMA device"),
    (r"Port number \d+ state is \w+|Couldn't set the link layer", "the port is not active: check cable and switch"),
    (r"Failed to modify QP", "the hosts can't address each other: compare GID index, ranges and VLAN of their ports"),
    (r"Couldn't allocate MR|Couldn't register|Cannot allocate memory", "too little locked memory: run role roce"),
    (
        r"Failed status 12\b",
        "packets don't arrive: check cable, switch, VLAN, and link MTU on the path (transport retries ran out)",
    ),
    (r"Failed status 13\b", "the receiver was not ready in time"),
    (r"Completion with error|Failed status \d+", "RDMA failed"),
    (r"Failed to exchange dat[ae]|Couldn't read remote address", "the other end stopped"),
)
CONNECT = re.compile(r"Couldn't connect to ")
"""The receiver does not listen yet. Only this failure is worth a retry."""


@dataclass(frozen=True)
class PerftestResult:
    """A result. gbit_s: average. peak_gbit_s: None if perftest measured none. mtu: the RoCE MTU that both hosts agreed on."""

    gbit_s: float
    peak_gbit_s: float | None
    mtu: int | None


class PerftestError(Exception):
    """There is no result; the message says why."""


def command(
    rdma: str, port: int, gid_index: int, tos: int, *, seconds: int, message: int, queues: int, at: int = PORT
) -> tuple[str, ...]:
    """Return the receiver's command. The sender appends the receiver's address."""
    return (
        *(PROGRAM, "-d", rdma, "-i", str(port), "-x", str(gid_index), "-p", str(at), "--tclass", str(tos)),
        *("-D", str(seconds), "-s", str(message), "-q", str(queues), "-F", "--report_gbits"),
    )


def parse(text: str, *, gigabits: bool = True) -> PerftestResult:
    """Return the result in perftest's text output or JSON document.

    gigabits: the unit of a JSON document, which does not name it. With several message sizes, the last one counts.
    Raises PerftestError if there is no result.
    """
    start = text.find("{")
    if start >= 0 and '"results"' in text:
        return _document(text[start:], gigabits)
    header = _HEADER.search(text)
    rows = _ROW.findall(text[header.end() :]) if header else []
    if not rows or not header:
        raise PerftestError(reason(text))
    unit = 1.0 if header[1] == "Gb" else _MEBIBYTE
    _, _, peak, average = rows[-1]
    mtu = _MTU.search(text)
    return PerftestResult(float(average) * unit, float(peak) * unit or None, int(mtu[1]) if mtu else None)


def _document(text: str, gigabits: bool) -> PerftestResult:
    try:
        # Some releases of perftest write a trailing comma, or the document twice.
        document: dict[str, Any] = json.JSONDecoder().raw_decode(re.sub(r",(\s*[}\]])", r"\1", text))[0]
        results = document["results"]
        result = results[-1] if isinstance(results, list) else results
        unit = 1.0 if gigabits else _MEBIBYTE
        peak = float(result.get("BW_peak") or 0) * unit
        mtu = document.get("test_info", {}).get("Mtu")
        return PerftestResult(float(result["BW_average"]) * unit, peak or None, int(mtu) if mtu else None)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise PerftestError(f"the JSON document has no result ({type(error).__name__})") from None


def reason(text: str, port: int = PORT) -> str:
    """Return why there is no result: the meaning of the error, and the line with it."""
    for pattern, meaning in _MEANINGS:
        if match := re.search(rf"^.*(?:{pattern}).*$", text, re.MULTILINE):
            return f"{meaning.format(port=port)} ({match[0].strip()})"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not set(line.strip()) <= {"-", "*"}]
    return f"no result ({lines[-1]})" if lines else "no result and no output"
