"""The process that runs an operation, so that others can tell whether it is alive."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holder(BaseModel):
    """An operator's process.

    who: user@host. started: its start time in clock ticks since its machine booted (proc_pid_stat(5)), because process IDs
    are reused. machine: the boot and the PID namespace of its process ID.
    """

    model_config = ConfigDict(frozen=True)

    who: str
    pid: int
    started: int
    machine: str

    @classmethod
    def this(cls) -> Holder:
        """Return this process."""
        return cls(
            who=f"{_user()}@{socket.gethostname()}", pid=os.getpid(), started=_started(os.getpid()), machine=_machine()
        )

    @property
    def is_of_this_machine(self) -> bool:
        """Whether this process can see it. Containers on one machine don't see each other's processes."""
        return self.machine == _machine()

    @property
    def lives(self) -> bool:
        """Whether it is alive. Only valid for a process on this machine."""
        return _started(self.pid) == self.started


def _user() -> str:
    """Return the user name, behind sudo that of the person."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return str(os.getuid())


def _machine() -> str:
    return f"{_BOOT.read_text().strip()}/{os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> int:
    """Return the start time of a process; 0 if there is none, or only a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
