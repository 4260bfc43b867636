"""Check cards, cables and paths; change nothing."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from . import cables, ways
from .edge import NET, Edge, Finding, Refused
from .ports import Settings, find, identity
from .settings import bring

# Drivers whose firmware consumes LLDP -> ethtool's flag against it. lldpd sets i40e's automatically.
FIRMWARE = {"ice": "fw-lldp-agent off", "i40e": "disable-fw-lldp on"}


class Report(NamedTuple):
    """What a check found. heard: link -> switches' ports. ways: the largest packet of each path."""

    findings: list[Finding]
    notes: list[str]
    heard: dict[str, list[cables.Heard]]
    ways: list[dict[str, Any]]


def lldp(edge: Edge) -> dict[str, list[cables.Heard]]:
    """Return interface -> switches heard there."""
    code, said = edge.run("lldpctl", "-f", "json0")
    if code:
        raise Refused("LNK-005", f"lldpctl: {said.strip()}; is lldpd.service running?")
    return cables.parse_lldp(json.loads(said or "{}"))


def check_cables(edge: Edge, settings: Settings, links: list[str], wait_s: float) -> Report:
    """Check the cables of this host's links, each against all, to find two that are swapped."""
    mine = [end for end in cables.ends(settings["host"], settings["links"]) if end.link in links]
    report = Report([], [], {}, [])
    if not mine:
        return report
    named = {}
    for end in mine:
        try:
            named[end.link] = find(edge, end.link, settings["links"][end.link])
        except Refused:  # reported with the link's settings
            continue
    carrier = {link: edge.read(f"{NET}/{port.name}/carrier") == "1" for link, port in named.items()}
    try:
        heard = _heard(edge, {port.name for link, port in named.items() if carrier[link]}, wait_s)
    except Refused as error:
        report.findings.append(Finding(error.code, "", str(error)))
        return report
    report.heard.update({link: heard.get(port.name, []) for link, port in named.items()})
    others = {(end.host, end.link): (end, report.heard.get(end.link, [])) for end in mine}
    for end in mine:
        if end.link not in named:
            continue
        port = named[end.link]
        flag = FIRMWARE.get(port.driver, "")
        hint = f"; {port.driver}'s firmware may hide it: ethtool --set-priv-flags {port.name} {flag}" if flag else ""
        wrong = cables.verdict(end, report.heard[end.link], others, carrier[end.link], hint)
        if wrong:
            report.findings.append(Finding("LNK-005", end.link, wrong))
    return report


def _heard(edge: Edge, names: set[str], wait_s: float) -> dict[str, list[cables.Heard]]:
    """Return what is heard, once each port has heard something or `wait_s` is over."""
    end = time.monotonic() + wait_s
    while True:
        heard = lldp(edge)
        if names <= heard.keys() or time.monotonic() >= end:
            return heard
        time.sleep(min(2.0, max(0.0, end - time.monotonic())))


def check_ways(edge: Edge, settings: Settings) -> Report:
    """Find the largest packet of each path in the settings."""
    report = Report([], [], {}, [])
    routes = edge.ip("-4", "route", "show", "default")
    router = next((route["gateway"] for route in routes if "gateway" in route), "")
    for way in settings["paths"]:
        result = ways.look(way, router)
        wrong, note = ways.verdict(way, result)
        report.ways.append({**way, "largest": result.largest})
        if wrong:
            report.findings.append(Finding("LNK-006", "", wrong, waits="host" in way))
        if note:
            report.notes.append(note)
    return report


def check(edge: Edge, settings: Settings, links: list[str], wait_s: float) -> Report:
    """Check everything; change nothing."""
    findings = identity(edge, settings)
    notes: list[str] = []
    for name in links:
        result = bring(edge, name, settings["links"][name], check=True)
        findings += result.wrong
        findings += [Finding("LNK-007", name, f"{result.port}: {text}: not as set") for text in result.changed]
        notes += result.notes
    cabling, widths = check_cables(edge, settings, links, wait_s), check_ways(edge, settings)
    return Report(findings + cabling.findings + widths.findings, notes + widths.notes, cabling.heard, widths.ways)
