"""Set this host's RDMA ports for its fabric, read the settings back, and set them again when a link comes back.

    menagerie-roce apply [--check] [--json] [RAIL ...]   0 as wanted, 1 failed, 2 if --check finds something to change
    menagerie-roce facts [RAIL ...]                      facts for `menagerie roce test`, as JSON
    menagerie-roce watch RAIL                            apply, then again whenever the port comes up; for systemd

Placed by Menagerie's role roce. Standard library only. The card loses the settings at a reboot or when its driver is
reloaded, so a unit for each rail sets them again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from menagerie_host.watching import link_events, tell_systemd

from .desired import LOOKED_AT, Differ, Settings, decide, desired, explained
from .edge import NET, Edge, Refused
from .facts import facts
from .ports import Port, interface_of
from .settings import Host

SETTINGS = "/etc/menagerie/roce.json"


class Result(NamedTuple):
    """The result for one rail's port. wrong: what still differs, or with --check would.

    changed: what was, or with --check would be, changed. notes: what is left unset, and why that does no harm.
    """

    rail: str
    port: str = ""
    changed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def bring(edge: Edge, settings: Settings, rail: str, check: bool) -> Result:
    """Reconcile one rail's port and read it back; with `check`, only compare."""
    try:
        host = Host(Port(edge, rail, settings["rails"][rail]), settings)
        values = desired(settings, host.port.driver)
        differ, notes = decide(values, host.look())
        settable = {name: pair for name, pair in differ.items() if name not in LOOKED_AT}
        refusals = {} if check else set_all(host, settable)
        left = decide(values, host.look())[0] if refusals or (settable and not check) else differ
    except Refused as error:
        return Result(rail, wrong=(str(error),))
    failed = left if not check else {name: left[name] for name in left if name in LOOKED_AT}
    wrong = (
        f"{host.port.interface}: {explained(name, *pair, settings)}"
        + (f": {refusals[name]}" if name in refusals else "")
        for name, pair in failed.items()
    )
    changed = (f"{name}: {was} -> {value}" for name, (was, value) in settable.items() if name not in failed)
    return Result(rail, str(host.port), tuple(changed), tuple(wrong), tuple(notes))


def set_all(host: Host, differ: Differ) -> dict[str, str]:
    """Set all that differs. Return setting -> why it was refused. The caller's result is what it reads back."""
    refusals = {}
    for name, (_, value) in differ.items():
        try:
            host.set(name, value)
        except Refused as error:
            refusals[name] = str(error)
    return refusals


def link_state(edge: Edge, device: dict[str, str]) -> tuple[str | None, bool]:
    """Return (interface and its count of link changes, whether it is up). Settings may be lost if the first changes."""
    try:
        interface = interface_of(edge, device)
    except Refused:
        return None, False
    path = f"{NET}/{interface}"
    now = f"{edge.read(f'{path}/ifindex')} {edge.read(f'{path}/carrier_changes')}"
    return now, edge.read(f"{path}/carrier") == "1"


def watch(edge: Edge, settings: Settings, rail: str, events: Iterable[None], ready: Callable[[], None]) -> int:
    """Apply, then again each time the port comes back. Return 1 at the first failure."""
    device = settings["rails"][rail]
    before = link_state(edge, device)
    result = bring(edge, settings, rail, check=False)
    show(result)
    if result.wrong:
        return 1
    ready()
    for _ in events:
        now = link_state(edge, device)
        if now != before and now[1]:
            result = bring(edge, settings, rail, check=False)
            show(result)
            if result.wrong:
                return 1
        before = now
    return 0


def show(result: Result) -> None:
    host = os.uname().nodename
    for line in result.wrong:
        print(f"{host}/{line}", file=sys.stderr)
    for line in (*result.changed, *result.notes):
        print(f"{result.rail}: {line}")
    sys.stdout.flush()


def main(arguments: list[str], edge: Edge) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["apply", "facts", "watch"])
    parser.add_argument("rails", nargs="*", metavar="RAIL")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 2 if something would change")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    text = edge.read(SETTINGS)
    if text is None:
        print(f"{SETTINGS} can't be read; run: menagerie up CLUSTER --tags roce", file=sys.stderr)
        return 1
    settings = json.loads(text)
    unknown = set(given.rails) - set(settings["rails"])
    if unknown:
        print(f"no rail {', '.join(sorted(unknown))}; there are: {', '.join(settings['rails'])}", file=sys.stderr)
        return 1
    rails = given.rails or list(settings["rails"])
    if given.verb == "watch":
        return watch(
            edge, settings, rails[0], link_events(), lambda: tell_systemd(f"READY=1\nSTATUS={rails[0]} is set")
        )
    if given.verb == "facts":
        return _facts(edge, settings, rails)
    results = [bring(edge, settings, rail, given.check) for rail in rails]
    for result in () if given.json else results:
        show(result)
    if given.json:
        print(json.dumps({"host": os.uname().nodename, "rails": [result._asdict() for result in results]}))
    if any(result.wrong for result in results):
        return 1
    return 2 if given.check and any(result.changed for result in results) else 0


def _facts(edge: Edge, settings: Settings, rails: list[str]) -> int:
    by_rail = {}
    for rail in rails:
        try:
            by_rail[rail] = facts(edge, settings, rail)
        except Refused as error:
            by_rail[rail] = {"refused": str(error)}
    print(json.dumps(by_rail))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Edge()))
