"""Engines that tests have started."""

from __future__ import annotations

import os
from pathlib import Path


def kill_engine() -> None:
    """The one that this process started."""
    for status in Path("/proc").glob("[0-9]*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        if fields["Name"] == "pulumi" and fields["PPid"] == str(os.getpid()):
            os.kill(int(status.parent.name), 9)
