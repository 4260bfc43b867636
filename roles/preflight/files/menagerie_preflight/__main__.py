"""Compare this host with what its kind must have, and write the result to a condition of its Node.

    menagerie-preflight            check, and write the condition PreflightPassed
    menagerie-preflight --print    check, and only print the findings; 1 if something fails
    menagerie-preflight --cleared  the GPUs are repaired: Xids up to now no longer count

DCGM's diagnostic runs only while no pod works here. The other checks use no GPU, and run each time.
"""

from __future__ import annotations

import os
import sys
import time

from . import CHECKS, FAIL, Finding, Unknown, compare, host, node, xid


def checked(here: host.Host, skew_s: float | None, idle: bool) -> tuple[list[Finding], str]:
    """Return all findings, and what the host was compared with."""
    settings = host.settings(here)
    expected = settings.get("expected") or {}
    facts = host.facts(here, expected, skew_s, idle and bool(settings.get("diagnose", True)))
    findings = compare.findings(facts, expected)
    if facts.pci_gpus or expected.get("gpus"):
        findings += xid.findings(host.kernel_log(here), host.cleared(here), xid.rules())
    only_watched = set(settings.get("only_watched") or ())
    if unknown := sorted(only_watched - set(CHECKS)):
        raise Unknown(f"preflight_only_watched: no check is called {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    findings = [each._replace(level="watch") if each.check in only_watched else each for each in findings]
    return findings, compare.subject(expected)


def show(findings: list[Finding]) -> None:
    for each in findings:
        print(f"{'FAIL' if each.level == FAIL else 'note'} {each.check}: {each.text}", flush=True)


def report(here: host.Host, api: node.Api, name: str) -> str:
    """Check and write the condition. Return its status."""
    path = f"/api/v1/nodes/{name}"
    own = api.call("GET", path)
    working = node.busy(api.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}").body)
    try:
        findings, subject = checked(here, own.ahead_s, not working)
    except (Unknown, OSError, ValueError, KeyError) as error:
        made = node.unsure(own.body, error, time.time())
    else:
        show(findings)
        made = node.condition(own.body, findings, time.time(), subject)
    api.call("PATCH", f"{path}/status", node.patch(made))
    host.record(here, made["status"])
    why = f" {made['message']}" if made["status"] == "Unknown" else ""
    print(f"{made['type']} is {made['status']}: {made['reason']}{why}", flush=True)
    return str(made["status"])


def main(arguments: list[str]) -> int:
    here = host.Host()
    if arguments == ["--cleared"]:
        os.makedirs(os.path.dirname(host.CLEARED), mode=0o700, exist_ok=True)
        with open(host.CLEARED, "w"):
            return 0
    if arguments == ["--print"]:
        findings, subject = checked(here, None, False)
        show(findings)
        print(f"compared with: {subject}", flush=True)
        return int(any(each.level == FAIL for each in findings))
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    report(here, node.Api(), host.settings(here)["node"])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Unknown, OSError, ValueError, KeyError) as error:
        sys.exit(str(error) or repr(error))
