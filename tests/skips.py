"""Which skips stay skips where MENAGERIE_NO_SKIPS is set, as `make` does: a skip on a machine that was prepared hides a proof.

By cause, and only causes that no set-up can mend. Reviewed like code: a new one needs its reason here.
"""

from __future__ import annotations

import re

HONEST = {
    r"loop device": "containers and small kernels have none, and none can be installed",
    r"this machine has a GPU": "the test is of a machine without",
    r"not the first network namespace": "/proc/net/stat/arp_cache exists only there",
    r"the machine has no /dev/full": "a device of the kernel",
}

WAY_OUT = (
    "skipped on a machine that the set-up has prepared: {reason}\n"
    "Run `make programs` as root and look at what it says; or, if no set-up can mend it, give the cause to tests/skips.py.\n"
    "A developer's own pytest, without MENAGERIE_NO_SKIPS, skips."
)


def failure(reason: str) -> str | None:
    """What to say instead of skipping; None where the skip is honest."""
    return None if any(re.search(cause, reason) for cause in HONEST) else WAY_OUT.format(reason=reason)
