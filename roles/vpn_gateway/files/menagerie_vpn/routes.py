"""What FRR runs beside its file."""

import re

from . import host

FRR = "/etc/frr/frr.conf"
RELOAD = "/usr/lib/frr/frr-reload.py"
SINCE_10 = "no ip nht resolve-via-default"


def apply(check):
    """FRR's own tool tells the difference between what runs and the file, and takes the steps from one to the other."""
    lines = differences(host.run(RELOAD, "--test", "--stdout", FRR))
    if f"FRR: +{SINCE_10}" in lines and release() < 10:
        lines.remove(f"FRR: +{SINCE_10}")  # the default before FRR 10, which leaves defaults out of what runs
    if lines and not check:
        host.run(RELOAD, "--reload", FRR)
    return lines


def release():
    """The first number of FRR's version. An unknown one counts as new, so that no line is left out by mistake."""
    found = re.search(r"FRRouting (\d+)", host.run("vtysh", "-c", "show version"))
    return int(found[1]) if found else 10


def differences(told):
    """vtysh adds the machine's name to what runs, whatever the file says."""
    found, sign = [], ""
    for line in told.splitlines():
        if line.startswith("Lines To "):
            sign = "-" if line.endswith("Delete") else "+"
        elif sign and line.strip() and not re.match(r"===|(no )?hostname |\d{4}-\d\d-\d\d ", line):
            found.append(f"FRR: {sign}{line}")
    return found
