"""Time-outs that mean the same in several places. One with another reason is in the file that uses it."""

from __future__ import annotations

from typing import Final

CONNECT_S: Final = 5.0
"""For a connection to a host, an agent or a BMC."""
HOST_COMMAND_S: Final = 60.0
"""For a short command on a host over ssh, login included."""
HOST_REPORT_S: Final = 120.0
"""For a program that examines a host over ssh: its disks, its settings, what it reaches."""
