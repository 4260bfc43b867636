"""One round of a host, and the restart of one program."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import time
from typing import Any

from ..boot.host import Failure, run, say
from ..boot.store import load_payload, place_secrets
from .turns import in_turn, out_of_reach
from .units import PATIENCE_S, TICK_S, changed_at, started_at, succeeds

SELF = "/usr/local/sbin/menagerie-refresh"
PAUSE_S = 2.0
REPORT_LIFE_S = 3600
REPORTS = "/menagerie/hosts/"


def lags(consumer: dict[str, Any]) -> str:
    """Why a program does not work with the present files yet; nothing where it does."""
    started, changed = started_at(consumer["unit"]), changed_at(consumer["paths"])
    if not started:
        return "is not running"
    if started > changed + TICK_S:
        return ""
    if consumer["loaded"]:
        return succeeds(consumer["loaded"])
    return f"runs with files from before {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(changed))}"


def restart(consumer: dict[str, Any], sleep: Any = time.sleep) -> None:
    """Restart a program that lags, and wait until it serves again. The lock is held by who calls."""
    unit = consumer["unit"]
    if not started_at(unit) or not lags(consumer):
        return
    why_not = succeeds(consumer["before"])
    if why_not:
        raise Failure(f"{unit} is not restarted, because the others must be well for that: {why_not}")
    run("systemctl", "restart", unit)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reason = succeeds(consumer["ready"])
        if not reason:
            break
        if time.monotonic() > deadline:
            raise Failure(f"{unit} was restarted and does not serve after {PATIENCE_S:.0f} s: {reason}")
        sleep(PAUSE_S)
    sleep(consumer["settle_s"])
    say(f"{unit} restarted for newer keys")


def catch_up(consumer: dict[str, Any], refresh: dict[str, Any]) -> None:
    """Bring a program to the present files, in its turn. Failure where it could not be."""
    if consumer["loaded"] or not started_at(consumer["unit"]) or not lags(consumer):
        return
    if not consumer["lock"]:
        restart(consumer)
        return
    # In a process of its own, for the lock is held by the program that starts it.
    reason = in_turn([*consumer["lock"], SELF, "restart", consumer["unit"]], refresh)
    if reason:
        raise Failure(f"{consumer['unit']}: {reason}")


def report(config: dict[str, Any], values: dict[str, str], certificates: dict[str, Any], failures: list[str]) -> None:
    """Say what this host has, where operators read it: no value, only what tells whether it is the wanted one."""
    refresh = config["refresh"]
    told = {
        "reader": refresh["reader"],
        "at": int(time.time()),
        "digests": {name: hashlib.sha256(value.encode()).hexdigest()[:16] for name, value in values.items()},
        "lagging": {each["unit"]: reason for each in refresh["consumers"] for reason in [lags(each)] if reason},
        "certificates": certificates,
        "failures": failures,
    }
    granted = run(*refresh["report"], "lease", "grant", str(REPORT_LIFE_S)).split()
    text = json.dumps(told, sort_keys=True)
    run(*refresh["report"], "put", "--lease=" + granted[1], REPORTS + socket.gethostname(), text)


def refresh_all(config: dict[str, Any]) -> None:
    """One round. What fails is told after everything else was tried, and tried again in the next."""
    refresh = config["refresh"]
    failures = []
    values = place_secrets(config["secrets"])
    certificates: dict[str, Any] = {}
    try:
        certificates = json.loads(run(*refresh["renew"])) if refresh["renew"] else {}
    except Failure as failure:
        failures.append(str(failure))
    for consumer in refresh["consumers"]:
        try:
            catch_up(consumer, refresh)
        except Failure as failure:
            failures.append(str(failure))
    if values and refresh["report"]:
        try:
            report(config, values, certificates, failures)
        except Failure as failure:
            failures.append(f"no report: {out_of_reach(refresh) or failure}")
    if failures:
        raise Failure("\n  ".join(failures))


def main() -> None:
    config = load_payload()
    try:
        if sys.argv[1:2] == ["restart"]:
            say(f"the turn of {sys.argv[2]} has come")
            for consumer in config["refresh"]["consumers"]:
                if consumer["unit"] == sys.argv[2] and not consumer["loaded"]:
                    restart(consumer)
        else:
            refresh_all(config)
    except Failure as failure:
        sys.exit(f"menagerie-refresh: {failure}")
