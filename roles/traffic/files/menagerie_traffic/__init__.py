"""Count the packets of this node's pods by namespace, direction and class, with the kernel's own counters.

Only `netlink` and `table` talk to the kernel, only `api` to the API server, and only `reservations` and `totals` read
files; the other modules are pure. Standard library only: the program runs on hosts without the command nft too.
"""

from __future__ import annotations

OUT, IN = "out", "in"
DIRECTIONS = (OUT, IN)
"""As the pod sees it: `out` is what it sends."""
CLASSES = ("pod", "ceph", "region", "site", "internet")
"""Where a packet's other end is. An address outside of all ranges is in the last one."""


class Refused(Exception):
    """Nothing was changed. The text says why, and the way out."""
