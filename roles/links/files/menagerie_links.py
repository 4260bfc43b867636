"""Sets this host's links, and checks cards, cables and how long packets may be against what the spec and the hosts file say.

    menagerie-links apply [--check] [--json] [LINK ...]   0 as wanted, 1 refused or not to be had, 2 --check would change it
    menagerie-links check [--json] [--wait S] [LINK ...]  looks only: settings, cards, cables and ways; 0 as wanted, 1 not
    menagerie-links watch                                 apply, then again whenever a link comes back; for systemd

--wait: seconds to wait for switches to be heard; they speak every 30 s. --others-may-wait: what another machine that isn't
set yet may be the reason of doesn't count. Placed by Menagerie's role links. Standard library only.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import links_cables as cables
import links_ways as ways
from links_edge import NET, Edge, Finding, Refused
from links_ports import find, identity
from links_settings import Result, bring

SETTINGS = "/etc/menagerie/links.json"
Settings = dict[str, Any]
# Their firmware takes LLDP for itself. i40e has "disable-fw-lldp", which lldpd sets by itself; ice the other.
FIRMWARE = {"ice": "fw-lldp-agent off", "i40e": "disable-fw-lldp on"}


class Report(NamedTuple):
    """What a check found. heard: link -> switches' ports. ways: how long packets may be on each."""

    findings: list[Finding]
    notes: list[str]
    heard: dict[str, list[cables.Heard]]
    ways: list[dict[str, Any]]


def lldp(edge: Edge) -> dict[str, list[cables.Heard]]:
    """Interface -> who is heard there."""
    code, said = edge.run("lldpctl", "-f", "json0")
    if code:
        raise Refused("LNK-005", f"lldpctl: {said.strip()}; is lldpd.service running?")
    return cables.parse_lldp(json.loads(said or "{}"))


def check_cables(edge: Edge, settings: Settings, links: list[str], wait_s: float) -> Report:
    """Cables of this host's links, each against all of them: two that are swapped are told so."""
    mine = [end for end in cables.ends(settings["host"], settings["links"]) if end.link in links]
    report = Report([], [], {}, [])
    if not mine:
        return report
    named = {}
    for end in mine:
        try:
            named[end.link] = find(edge, end.link, settings["links"][end.link])
        except Refused:  # said with the link's settings
            continue
    carrier = {link: edge.read(f"{NET}/{port.name}/carrier") == "1" for link, port in named.items()}
    try:
        told = _heard(edge, {port.name for link, port in named.items() if carrier[link]}, wait_s)
    except Refused as error:
        report.findings.append(Finding(error.code, "", str(error)))
        return report
    report.heard.update({link: told.get(port.name, []) for link, port in named.items()})
    others = {(end.host, end.link): (end, report.heard.get(end.link, [])) for end in mine}
    for end in mine:
        if end.link not in named:
            continue
        port = named[end.link]
        flag = FIRMWARE.get(port.driver, "")
        hint = f"; {port.driver}'s firmware may take it: ethtool --set-priv-flags {port.name} {flag}" if flag else ""
        wrong = cables.verdict(end, report.heard[end.link], others, carrier[end.link], hint)
        if wrong:
            report.findings.append(Finding("LNK-005", end.link, wrong))
    return report


def _heard(edge: Edge, names: set[str], wait_s: float) -> dict[str, list[cables.Heard]]:
    """Once something was heard at each, or nothing more is to be waited for."""
    end = time.monotonic() + wait_s
    while True:
        told = lldp(edge)
        if names <= told.keys() or time.monotonic() >= end:
            return told
        time.sleep(min(2.0, max(0.0, end - time.monotonic())))


def check_ways(edge: Edge, settings: Settings) -> Report:
    """How long packets may be, to each place that the settings name."""
    report = Report([], [], {}, [])
    routes = edge.ip("-4", "route", "show", "default")
    router = next((route["gateway"] for route in routes if "gateway" in route), "")
    for way in settings["paths"]:
        found = ways.look(way, router)
        wrong, note = ways.verdict(way, found)
        report.ways.append({**way, "largest": found.largest})
        if wrong:
            report.findings.append(Finding("LNK-006", "", wrong, waits="host" in way))
        if note:
            report.notes.append(note)
    return report


def check(edge: Edge, settings: Settings, links: list[str], wait_s: float) -> Report:
    """Everything that can be looked at; changes nothing."""
    findings = identity(edge, settings)
    notes: list[str] = []
    for name in links:
        result = bring(edge, name, settings["links"][name], check=True)
        findings += result.wrong
        findings += [Finding("LNK-007", name, f"{result.port}: {text}: not as set") for text in result.changed]
        notes += result.notes
    cabling, widths = check_cables(edge, settings, links, wait_s), check_ways(edge, settings)
    return Report(findings + cabling.findings + widths.findings, notes + widths.notes, cabling.heard, widths.ways)


# --- watching -------------------------------------------------------------------------------------------------------


def states(edge: Edge, names: list[str]) -> list[str | None]:
    """Of each port: what changes when settings may be lost, and the MTU, which others set too."""
    return [edge.read(f"{NET}/{name}/{part}") for name in names for part in ("ifindex", "carrier_changes", "mtu")]


def watch(edge: Edge, settings: Settings, events: Iterable[None], ready: Callable[[], None]) -> int:
    """Apply, then again each time a port changes. Ends with the first time that it can't; systemd tries again."""
    names = _applied(edge, settings)
    if names is None:
        return 1
    ready()
    before = states(edge, names)
    for _ in events:
        if states(edge, names) != before:
            names = _applied(edge, settings)
            if names is None:
                return 1
            before = states(edge, names)
    return 0


def _applied(edge: Edge, settings: Settings) -> list[str] | None:
    """The ports; None where one isn't to be had."""
    results = [bring(edge, name, link, check=False) for name, link in settings["links"].items()]
    for result in results:
        show(settings["host"], result)
    return None if any(result.wrong for result in results) else [result.interface for result in results]


def link_events() -> Iterator[None]:
    """One value for each burst of changes of the kernel's links (rtnetlink(7), group RTMGRP_LINK), from now on."""
    listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    listener.bind((0, 1))

    def bursts() -> Iterator[None]:
        while True:
            _got(listener, 0)
            time.sleep(1)
            while _got(listener, socket.MSG_DONTWAIT):
                pass
            yield None

    return bursts()


def _got(listener: socket.socket, flags: int) -> bool:
    """Whether there was a message. Messages may be lost when there are many (ENOBUFS), which tells as much as one."""
    try:
        listener.recv(65536, flags)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno == errno.ENOBUFS
    return True


def tell_systemd(text: str) -> None:
    """sd_notify(3)."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(text.encode(), "\0" + path[1:] if path.startswith("@") else path)


# --- verbs ----------------------------------------------------------------------------------------------------------


def line(host: str, finding: Finding) -> str:
    return f"{' '.join(part for part in (host, finding.link) if part)}: {finding.text} [{finding.code}]"


def show(host: str, result: Result) -> None:
    for finding in result.wrong:
        print(line(host, finding), file=sys.stderr)
    for text in (*(f"{result.link}: {each}" for each in result.changed), *result.notes):
        print(text)
    sys.stdout.flush()


def apply_all(edge: Edge, settings: Settings, links: list[str], only_look: bool, as_json: bool) -> int:
    results = [bring(edge, name, settings["links"][name], only_look) for name in links]
    wrong = [line(settings["host"], finding) for result in results for finding in result.wrong]
    if as_json:
        told = [{**result._asdict(), "wrong": [each._asdict() for each in result.wrong]} for result in results]
        print(json.dumps({"host": settings["host"], "links": told, "reboot": any(r.reboot for r in results)}))
        for text in wrong:
            print(text, file=sys.stderr)
    else:
        for result in results:
            show(settings["host"], result)
    if wrong:
        return 1
    return 2 if only_look and any(result.changed for result in results) else 0


def check_all(edge: Edge, settings: Settings, given: argparse.Namespace, links: list[str]) -> int:
    report = check(edge, settings, links, given.wait)
    wrong = [each for each in report.findings if not (each.waits and given.others_may_wait)]
    lines = [line(settings["host"], each) for each in report.findings]
    if given.json:
        findings = [{**each._asdict(), "line": text} for each, text in zip(report.findings, lines, strict=True)]
        heard = {link: [each._asdict() for each in heard] for link, heard in report.heard.items()}
        told = {"findings": findings, "notes": report.notes, "heard": heard, "ways": report.ways}
        print(json.dumps({"host": settings["host"], **told}))
    else:
        for way in report.ways:
            print(f"{way['to']}: packets of {way['largest']} bytes of {way['mtu']} arrive whole")
        for note in report.notes:
            print(note)
    for text in lines:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


def main(arguments: list[str], edge: Edge) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["apply", "check", "watch"])
    parser.add_argument("links", nargs="*", metavar="LINK")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 2 where something would change")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wait", type=float, default=0.0, metavar="S")
    parser.add_argument("--others-may-wait", action="store_true")
    given = parser.parse_args(arguments)
    text = edge.read(SETTINGS)
    if text is None:
        print(f"{SETTINGS} can't be read; run: menagerie up CLUSTER --tags links", file=sys.stderr)
        return 1
    settings = json.loads(text)
    unknown = set(given.links) - set(settings["links"])
    if unknown:
        known = ", ".join(settings["links"])
        print(f"no link {', '.join(sorted(unknown))}; there are: {known}", file=sys.stderr)
        return 1
    try:
        return run(edge, settings, given)
    except PermissionError as error:
        print(f"{error.strerror}: only root may set links and send packets that are its own", file=sys.stderr)
        return 1


def run(edge: Edge, settings: Settings, given: argparse.Namespace) -> int:
    links = given.links or list(settings["links"])
    if given.verb == "watch":
        return watch(edge, settings, link_events(), lambda: tell_systemd("READY=1\nSTATUS=links are set"))
    if given.verb == "check":
        return check_all(edge, settings, given, links)
    return apply_all(edge, settings, links, given.check, given.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Edge()))
