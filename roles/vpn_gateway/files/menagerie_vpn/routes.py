"""Compare what FRR runs with its file, and reload it."""

import re

from . import host

FRR = "/etc/frr/frr.conf"
RELOAD = "/usr/lib/frr/frr-reload.py"
SINCE_10 = "no ip nht resolve-via-default"


def apply(check):
    """Reconcile what FRR runs with its file, with FRR's own tool. Return what differed."""
    lines = differences(host.run(RELOAD, "--test", "--stdout", FRR))
    if f"FRR: +{SINCE_10}" in lines and release() < 10:
        lines.remove(f"FRR: +{SINCE_10}")  # the default before FRR 10, which does not show defaults
    if lines and not check:
        host.run(RELOAD, "--reload", FRR)
    return lines


def release():
    """Return the first number of FRR's version. An unknown version counts as new, so no line is lost by mistake."""
    match = re.search(r"FRRouting (\d+)", host.run("vtysh", "-c", "show version"))
    return int(match[1]) if match else 10


def differences(output):
    """Parse the tool's output. Ignore the hostname: vtysh adds it to what runs, whatever the file has."""
    differing, sign = [], ""
    for line in output.splitlines():
        if line.startswith("Lines To "):
            sign = "-" if line.endswith("Delete") else "+"
        elif sign and line.strip() and not re.match(r"===|(no )?hostname |\d{4}-\d\d-\d\d ", line):
            differing.append(f"FRR: {sign}{line}")
    return differing
