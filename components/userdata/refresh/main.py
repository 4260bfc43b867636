"""One round on a host, and the restart of one program."""

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
    """Return why a program does not use the current files yet, "" if it does."""
    started, changed = started_at(consumer["unit"]), changed_at(consumer["paths"])
    if not started:
        return "is not running"
    if started > changed + TICK_S:
        return ""
    if consumer["loaded"]:
        return succeeds(consumer["loaded"])
    return f"runs with files from before {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(changed))}"


def restart(consumer: dict[str, Any], sleep: Any = time.sleep) -> None:
    """Restart a program that lags, and wait until it serves again. The caller holds the lock."""
    unit = consumer["unit"]
    if not started_at(unit) or not lags(consumer):
        return
    why_not = succeeds(consumer["before"])
    if why_not:
        raise Failure(f"{unit} is not restarted while another one is unhealthy: {why_not}")
    run("systemctl", "restart", unit)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reason = succeeds(consumer["ready"])
        if not reason:
            break
        if time.monotonic() > deadline:
            raise Failure(f"{unit} was restarted but does not serve after {PATIENCE_S:.0f} s: {reason}")
        sleep(PAUSE_S)
    sleep(consumer["settle_s"])
    say(f"{unit} restarted for newer keys")


def catch_up(consumer: dict[str, Any], refresh: dict[str, Any]) -> None:
    """Restart a program that lags, under its lock. Failure if that is not possible."""
    if consumer["loaded"] or not started_at(consumer["unit"]) or not lags(consumer):
        return
    if not consumer["lock"]:
        restart(consumer)
        return
    # In a child process of etcdctl, which holds the lock.
    reason = in_turn([*consumer["lock"], SELF, "restart", consumer["unit"]], refresh)
    if reason:
        raise Failure(f"{consumer['unit']}: {reason}")


def report(config: dict[str, Any], values: dict[str, str], certificates: dict[str, Any], failures: list[str]) -> None:
    """Report to operators what this host has: digests, never values."""
    refresh = config["refresh"]
    state = {
        "reader": refresh["reader"],
        "at": int(time.time()),
        "digests": {name: hashlib.sha256(value.encode()).hexdigest()[:16] for name, value in values.items()},
        "lagging": {each["unit"]: reason for each in refresh["consumers"] for reason in [lags(each)] if reason},
        "certificates": certificates,
        "failures": failures,
    }
    granted = run(*refresh["report"], "lease", "grant", str(REPORT_LIFE_S)).split()
    text = json.dumps(state, sort_keys=True)
    run(*refresh["report"], "put", "--lease=" + granted[1], REPORTS + socket.gethostname(), text)


def refresh_all(config: dict[str, Any]) -> None:
    """Run one round. Errors are reported after all else was tried; the next round retries."""
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
            say(f"{sys.argv[2]} has the lock")
            for consumer in config["refresh"]["consumers"]:
                if consumer["unit"] == sys.argv[2] and not consumer["loaded"]:
                    restart(consumer)
        else:
            refresh_all(config)
    except Failure as failure:
        sys.exit(f"menagerie-refresh: {failure}")
