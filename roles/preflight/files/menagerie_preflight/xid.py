"""Xids: errors that the NVIDIA driver writes to the kernel's log, and what to do about each. Pure.

xids.json has the meaning of each number, with its source. Only Xids since the last boot count, and since the GPUs were
last marked as repaired (`cleared`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from . import FAIL, WATCH, Finding

# "Step 1: Determine Xid Code" of NVIDIA's page: formerly (0000:03:00), now (PCI:0000:5a:00); some add the function.
_LINE = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (?P<code>\d+)\b,?\s*(?P<text>.*)"
)
# nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
_SWITCH = re.compile(
    r"nvswitch\d*: SXid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<code>\d+), (?P<severity>Fatal|Non-fatal), (?P<text>.*)"
)
_STAMP = re.compile(r"^(\d+\.\d+) ")
_RECOVERY = re.compile(r"to 0x[0-9a-fA-F]+ \((?P<action>[^)]*)\)")
# Xid 144 to 150: <number> <sub component> <fatal or nonfatal> ...; "Link Fatal" is fatal for one link.
_FATAL = re.compile(r"(?<!non)(?<!non-)\bfatal\b", re.IGNORECASE)
RANK = ("ignore", "watch", "reset", "reboot", "service")
WANTS = {
    "reset": "drain, then reset the GPU",
    "reboot": "drain, then power-cycle the host",
    "service": "drain, then repair or replace it",
    "watch": "keep an eye on it",
}


class Xid(NamedTuple):
    """A line of the kernel's log. at: Unix time, None if the line has none. switch: an NVSwitch's own error (SXid)."""

    bus: str
    code: int
    text: str
    at: float | None = None
    switch: bool = False
    fatal: bool = False


def rules() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "xids.json")) as handle:
        catalogue: dict[str, Any] = json.load(handle)
    return catalogue


def bus_id(text: str) -> str:
    """Return 0000:3b:00 for nvidia-smi's 00000000:3B:00.0 and the driver's 0000:3b:00."""
    domain, rest = text.lower().split(":", 1)
    return f"{domain[-4:]}:{rest.split('.')[0]}"


def parse(lines: Iterable[str]) -> Iterator[Xid]:
    """Yield Xids and SXids from lines of the kernel's log, each with or without a leading Unix time."""
    for line in lines:
        stamp = _STAMP.match(line)
        at = float(stamp[1]) if stamp else None
        match = _LINE.search(line)
        if match:
            yield Xid(bus_id(match["bus"]), int(match["code"]), match["text"].strip(), at)
            continue
        match = _SWITCH.search(line)
        if match:
            fatal = match["severity"] == "Fatal"
            yield Xid(bus_id(match["bus"]), int(match["code"]), match["text"].strip(), at, True, fatal)


def does(xid: Xid, known: dict[str, Any]) -> str:
    """Return one of `RANK`."""
    if xid.switch:
        # NVIDIA Fabric Manager User Guide: fatal ones need a reset of GPUs and NVSwitches.
        return "reset" if xid.fatal else "watch"
    rule = known["xids"].get(str(xid.code))
    action = str(rule["does"]) if rule else "watch"
    if action == "by-recovery":
        said = _RECOVERY.search(xid.text)
        return str(known["recovery"].get(said["action"], "watch")) if said else "watch"
    if action == "by-severity":
        return "reset" if _FATAL.search(xid.text) else "watch"
    return action


def name(xid: Xid, known: dict[str, Any]) -> str:
    if xid.switch:
        return f"SXid {xid.code} ({xid.text})"
    rule = known["xids"].get(str(xid.code))
    return f"Xid {xid.code} ({rule['name'] if rule else 'not in the catalogue'})"


def findings(xids: Iterable[Xid], cleared: float, known: dict[str, Any]) -> list[Finding]:
    """Return a finding for each GPU and kind of Xid that counts, the worst first."""
    counted: dict[Any, int] = {}
    for xid in xids:
        action = does(xid, known)
        if action == "ignore" or (xid.at is not None and xid.at <= cleared):
            continue
        # The rest of a line only names the process, except for Xid 154, whose action is in it.
        key = (-RANK.index(action), xid.bus, xid.code, xid.switch, name(xid, known))
        counted[key] = counted.get(key, 0) + 1
    xid_findings = []
    for (rank, bus, _, switch, called), times in sorted(counted.items()):
        action = RANK[-rank]
        often = f", {times} times" if times > 1 else ""
        text = f"{'NVSwitch' if switch else 'GPU'} {bus}: {called}{often}: {WANTS[action]}"
        xid_findings.append(Finding("xid", "XidReported", text, WATCH if action == "watch" else FAIL))
    return xid_findings
