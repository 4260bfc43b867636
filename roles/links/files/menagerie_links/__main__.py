"""Set this host's links, and check settings, cards, cables and packet sizes against the spec and the hosts file.

    menagerie-links apply [--check] [--json] [LINK ...]   0 as wanted, 1 failed, 2 if --check finds something to change
    menagerie-links check [--json] [--wait S] [LINK ...]  read only: settings, cards, cables, paths; 0 as wanted, 1 not
    menagerie-links watch                                 apply, then again whenever a link comes back; for systemd

--wait: seconds to wait for switches, which announce themselves every 30 s. --others-may-wait: ignore findings that may
come from another machine that isn't set yet. Placed by Menagerie's role links. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable

from menagerie_host.watching import link_events, tell_systemd

from .check import check
from .edge import NET, Edge, Finding
from .ports import Settings
from .settings import Result, bring

SETTINGS = "/etc/menagerie/links.json"
REBOOTS = "/run/menagerie/reboot-required.d"
"""Where role boot reads reasons for a reboot."""

# --- watching -------------------------------------------------------------------------------------------------------


def states(edge: Edge, names: list[str]) -> list[str | None]:
    """Return, for each port, values that change when settings may be lost, and the MTU, which others set too."""
    return [edge.read(f"{NET}/{name}/{part}") for name in names for part in ("ifindex", "carrier_changes", "mtu")]


def watch(edge: Edge, settings: Settings, events: Iterable[None], ready: Callable[[], None]) -> int:
    """Apply, then again each time a port changes. Return 1 at the first failure; systemd retries."""
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
    """Apply, and return the ports; None if one failed."""
    results = [bring(edge, name, link, check=False) for name, link in settings["links"].items()]
    for result in results:
        ask_for_reboot(edge, result)
        show(settings["host"], result)
    return None if any(result.wrong for result in results) else [result.interface for result in results]


# --- verbs ----------------------------------------------------------------------------------------------------------


def line(host: str, finding: Finding) -> str:
    return f"{' '.join(part for part in (host, finding.link) if part)}: {finding.text} [{finding.code}]"


def show(host: str, result: Result) -> None:
    for finding in result.wrong:
        print(line(host, finding), file=sys.stderr)
    for text in (*(f"{result.link}: {each}" for each in result.changed), *result.notes):
        print(text)
    sys.stdout.flush()


def ask_for_reboot(edge: Edge, result: Result) -> None:
    """Request a reboot if the port needs one to get its name. The file is gone after a boot."""
    path = edge.at(f"{REBOOTS}/links-{result.link}")
    if result.reboot:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(f"{result.interface} must be renamed to {result.link}\n")
    elif os.path.exists(path):
        os.unlink(path)


def apply_all(edge: Edge, settings: Settings, links: list[str], only_look: bool, as_json: bool) -> int:
    results = [bring(edge, name, settings["links"][name], only_look) for name in links]
    for result in results if not only_look else ():
        ask_for_reboot(edge, result)
    wrong = [line(settings["host"], finding) for result in results for finding in result.wrong]
    if as_json:
        reports = [{**result._asdict(), "wrong": [each._asdict() for each in result.wrong]} for result in results]
        print(json.dumps({"host": settings["host"], "links": reports, "reboot": any(r.reboot for r in results)}))
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
        body = {"findings": findings, "notes": report.notes, "heard": heard, "ways": report.ways}
        print(json.dumps({"host": settings["host"], **body}))
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
    parser.add_argument("--check", action="store_true", help="change nothing; exit 2 if something would change")
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
        print(f"{error.strerror}: only root may set links and send raw packets", file=sys.stderr)
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
