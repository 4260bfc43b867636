"""Which process an operation is run by, so that others can tell whether it lives."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holder(BaseModel):
    """A process of an operator's.

    who: user@host. started: when it began, in clock ticks since its machine booted (proc_pid_stat(5)), for process IDs
    are used again. machine: the boot and the namespace that its process ID is of.
    """

    model_config = ConfigDict(frozen=True)

    who: str
    pid: int
    started: int
    machine: str

    @classmethod
    def this(cls) -> Holder:
        """The process that asks."""
        return cls(
            who=f"{_user()}@{socket.gethostname()}", pid=os.getpid(), started=_started(os.getpid()), machine=_machine()
        )

    @property
    def is_of_this_machine(self) -> bool:
        """Whether this process would see it; two containers of one machine don't see each other's."""
        return self.machine == _machine()

    @property
    def lives(self) -> bool:
        """Of a process of this machine only."""
        return _started(self.pid) == self.started


def _user() -> str:
    """The person, where sudo tells who that is."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user that it has no name for
        return str(os.getuid())


def _machine() -> str:
    return f"{_BOOT.read_text().strip()}/{os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> int:
    """0 where there is no such process, or one that has ended and that its parent has not noticed yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
