"""Read and set a port's MTU, rings and offloads with ip(8) and ethtool(8)."""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from .edge import NET, Edge, Finding, Refused
from .ports import Port, Settings, find

# ethtool -k prints some features under long names, for which ethtool -K takes only a short one.
SHORT = {
    "rx-checksumming": "rx", "tx-checksumming": "tx", "scatter-gather": "sg", "tcp-segmentation-offload": "tso",
    "udp-fragmentation-offload": "ufo", "generic-segmentation-offload": "gso", "generic-receive-offload": "gro",
    "large-receive-offload": "lro", "rx-vlan-offload": "rxvlan", "tx-vlan-offload": "txvlan",
    "ntuple-filters": "ntuple", "receive-hashing": "rxhash",
}  # fmt: skip
LONG = {short: name for name, short in SHORT.items()}
RINGS = {"rx_ring": "rx", "tx_ring": "tx"}


class Result(NamedTuple):
    """The result for one link. port: "" if there is none. changed: what was, or with --check would be, changed. reboot:
    the port has another name until then."""

    link: str
    interface: str
    port: str
    changed: tuple[str, ...]
    wrong: tuple[Finding, ...]
    notes: tuple[str, ...]
    reboot: bool


class Step(NamedTuple):
    """A setting that differs. refused: why it can't be set, "" if it can."""

    name: str
    now: str
    desired: str
    refused: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.now} -> {self.desired}"


def parse_rings(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Parse ethtool -g: (largest, now), each by "rx" and "tx". Other rings, and "n/a", are left out."""
    largest, _, now = text.partition("Current hardware settings:")

    def read(part: str) -> dict[str, int]:
        return {name.lower(): int(size) for name, size in re.findall(r"^(RX|TX):\s*(\d+)", part, re.MULTILINE)}

    return read(largest), read(now)


def parse_features(text: str) -> dict[str, tuple[bool, bool]]:
    """Parse ethtool -k: feature -> (on, fixed)."""
    features = re.findall(r"^\s*([\w-]+): (on|off)( \[fixed\])?", text, re.MULTILINE)
    return {name: (state == "on", bool(fixed)) for name, state, fixed in features}


def steps(edge: Edge, port: Port, link: Settings) -> list[Step]:
    """Return the settings that differ, in the order in which to set them."""
    differing = [*_mtu(edge, port, link["mtu"])]
    rings = {RINGS[key]: link[key] for key in RINGS if key in link}
    if rings:
        differing += _rings(edge, port, rings)
    if link.get("offloads"):
        differing += _features(edge, port, link["offloads"])
    return differing


def _mtu(edge: Edge, port: Port, desired: int) -> list[Step]:
    now = edge.read(f"{NET}/{port.name}/mtu") or "unknown"
    if now == str(desired):
        return []
    every = edge.ip("-details", "link", "show", "dev", port.name)
    shown = next((each for each in every if each.get("ifname") == port.name), {})
    least, most = shown.get("min_mtu", 0), shown.get("max_mtu", 0)
    refused = ""
    if edge.names(f"{NET}/{port.name}/bonding_slave"):
        refused = f"it is in the bond {edge.target(f'{NET}/{port.name}/master')}, which sets it; set the bond's"
    elif desired < least or (most and desired > most):
        refused = f"this card takes {least} to {most}"
    return [Step("mtu", now, str(desired), refused)]


def _rings(edge: Edge, port: Port, desired: dict[str, int]) -> list[Step]:
    code, said = edge.run("ethtool", "-g", port.name)
    largest, now = parse_rings(said) if code == 0 else ({}, {})
    differing = []
    for ring, size in desired.items():
        if ring not in now:
            differing.append(
                Step(f"{ring}_ring", "none", str(size), f"{port.driver or 'this driver'} has no ring to set")
            )
        elif size > largest.get(ring, size):
            differing.append(Step(f"{ring}_ring", str(now[ring]), str(size), f"its largest is {largest[ring]}"))
        elif size != now[ring]:
            differing.append(Step(f"{ring}_ring", str(now[ring]), str(size)))
    return differing


def _features(edge: Edge, port: Port, desired: dict[str, bool]) -> list[Step]:
    known = parse_features(edge.run("ethtool", "-k", port.name)[1])
    differing = []
    for name, on in desired.items():
        full = LONG.get(name, name)
        value = "on" if on else "off"
        if full not in known:
            near = difflib.get_close_matches(full, known, 1)
            differing.append(Step(name, "unknown", value, "no such feature" + (f"; it has {near[0]}" if near else "")))
            continue
        state, fixed = known[full]
        if state != on:
            differing.append(Step(name, "on" if state else "off", value, "it is fixed" if fixed else ""))
    return differing


def set_all(edge: Edge, port: Port, pending: list[Step]) -> str:
    """Set them, with one command for each kind. Return the tools' errors."""
    commands = []
    for step in pending:
        if step.name == "mtu":
            commands.append(["ip", "link", "set", "dev", port.name, "mtu", step.desired])
    rings = [word for step in pending if step.name in RINGS for word in (RINGS[step.name], step.desired)]
    if rings:
        commands.append(["ethtool", "-G", port.name, *rings])
    features = [step for step in pending if step.name not in {"mtu", *RINGS}]
    if features:
        pairs = [word for step in features for word in (SHORT.get(step.name, step.name), step.desired)]
        commands.append(["ethtool", "-K", port.name, *pairs])
    failed = [said for code, said in (edge.run(*command) for command in commands) if code]
    return " ".join(" ".join(failed).split())


def bring(edge: Edge, name: str, link: Settings, check: bool) -> Result:
    """Reconcile one link's settings and read them back; with `check`, only compare."""
    try:
        port = find(edge, name, link)
    except Refused as error:
        return Result(name, "", "", (), (Finding(error.code, name, str(error)),), (), False)
    differing = steps(edge, port, link)
    possible = [step for step in differing if not step.refused]
    wrong = [Finding("LNK-007", name, f"{port}: {step}: {step.refused}") for step in differing if step.refused]
    said, left = "", []
    if possible and not check:
        said = set_all(edge, port, possible)
        after = {step.name: step for step in steps(edge, port, link) if not step.refused}
        left = [step for step in possible if step.name in after]
        wrong += [Finding("LNK-007", name, _not_taken(port, step, after[step.name].now, said)) for step in left]
    changed = tuple(str(step) for step in possible if step not in left)
    renamed = port.name != name
    notes = (f"{name} is called {port.name} until this host reboots",) if renamed else ()
    return Result(name, port.name, str(port), changed, tuple(wrong), notes, renamed)


def _not_taken(port: Port, step: Step, after: str, said: str) -> str:
    """Explain a setting that was not taken. Drivers round the sizes of rings, so suggest the rounded size."""
    if after != step.now and step.name in RINGS:
        return f"{port}: {step}: the card rounds it to {after}; write {step.name}: {after}"
    return f"{port}: {step}: it still is {after}" + (f": {said}" if said else "")
