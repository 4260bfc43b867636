"""Skips that are allowed with MENAGERIE_NO_SKIPS, which `make` sets: on a prepared machine, any other skip hides a proof.

Listed by cause; only causes that no set-up can fix. Reviewed like code: a new one needs its reason here.
"""

from __future__ import annotations

import re

HONEST = {
    r"^(no loop device can be|this kernel view has no loop devices)": "containers and small kernels have none, and no set-up can install one",
    r"this machine has a GPU": "the test needs a machine without one",
    r"not the first network namespace": "/proc/net/stat/arp_cache exists only in that one",
    r"the machine has no /dev/full": "the kernel provides it",
}

WAY_OUT = (
    "skipped on a machine that the set-up has prepared: {reason}\n"
    "Run `make programs` as root and read its output. If no set-up can fix the cause, add it to tests/skips.py.\n"
    "Without MENAGERIE_NO_SKIPS, as when you run pytest yourself, the test is skipped."
)


def failure(reason: str) -> str | None:
    """Return the failure's text for a skip; None if the skip is honest."""
    return (
        None
        if any(re.search(cause, reason.removeprefix("Skipped: ")) for cause in HONEST)
        else WAY_OUT.format(reason=reason)
    )
