"""Faults of the lab's machines, each for the length of a block.

Whatever breaks a host from outside for longer than a moment also ends by itself (`AT_MOST_S`), by a timer of the host's own:
a run that is killed in the middle leaves a lab that heals.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from lab import cgroups, hosts
from lab.errors import LabError

AT_MOST_S = 600
_TABLE = "menagerie_fault"
_PAGE = 4096
_LOG_MB = 64
"""What etcd allocates for its write-ahead log, and again for the next one."""


def do(host: str, *argv: str) -> str:
    """What a command prints on a host. LabError where it fails."""
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def killed(host: str, unit: str) -> Iterator[None]:
    """SIGKILL for a unit's processes; systemd starts it again after its own delay."""
    do(host, "systemctl", "kill", "--signal=SIGKILL", unit)
    yield


@contextmanager
def paused(host: str, unit: str) -> Iterator[None]:
    """SIGSTOP, as a machine that swaps or a hypervisor that takes the processor away; it does not know that it slept."""
    _later(host, f"{_TABLE}-go-on", "systemctl", "kill", "--signal=SIGCONT", unit)
    do(host, "systemctl", "kill", "--signal=SIGSTOP", unit)
    try:
        yield
    finally:
        do(host, "systemctl", "kill", "--signal=SIGCONT", unit)
        _forget(host, f"{_TABLE}-go-on")


@contextmanager
def stopped(names: Sequence[str], unit: str) -> Iterator[None]:
    """A unit of several hosts, stopped at once: one that is told alone to stop hands its leadership on."""
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda host: _later(host, f"{_TABLE}-start", "systemctl", "start", unit), names))
        list(pool.map(lambda host: do(host, "systemctl", "stop", unit), names))
    try:
        yield
    finally:
        for host in names:
            do(host, "systemctl", "start", "--no-block", unit)
            _forget(host, f"{_TABLE}-start")


@contextmanager
def cut(host: str, addresses: Sequence[str], share: int = 100) -> Iterator[None]:
    """Packets between a host and some addresses are dropped, `share` of a hundred of them, in both directions."""
    lose = "drop" if share >= 100 else f"numgen random mod 100 < {share} drop"
    others = ", ".join(addresses)
    rules = (
        f"table inet {_TABLE} {{\n"
        f" chain input {{ type filter hook input priority -300; ip saddr {{ {others} }} {lose}; }}\n"
        f" chain output {{ type filter hook output priority -300; ip daddr {{ {others} }} {lose}; }}\n"
        "}\n"
    )
    _later(host, f"{_TABLE}-join", "nft", "delete", "table", "inet", _TABLE)
    do(host, "nft", rules)
    try:
        yield
    finally:
        do(host, "nft", "delete", "table", "inet", _TABLE)
        _forget(host, f"{_TABLE}-join")


@contextmanager
def slow_disk(host: str, unit: str, delay_ms: int) -> Iterator[None]:
    """Every fdatasync of a unit takes so much longer. etcd answers a write only after one (etcd.io, "Hardware")."""
    delay = f"inject=fdatasync:delay_enter={delay_ms * 1000}"
    command = ["strace", "-f", "-p", str(_pid(host, unit)), "-e", "trace=fdatasync", "-e", "signal=none", "-e", delay]
    tracer = subprocess.Popen([*command, "-o", os.devnull], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        # strace lets go of what it traces when it is asked to end, and takes the traced along when it is killed.
        tracer.terminate()
        tracer.wait(AT_MOST_S)


@contextmanager
def full_disk(host: str, unit: str, folder: str) -> Iterator[None]:
    """A unit's folder on a file system of its own, small and full to the last byte."""
    small, filler = f"/run/{_TABLE}", f"{folder}/filler"
    do(host, "systemctl", "stop", unit)
    try:
        _onto_small_disk(host, folder, small)
    finally:
        do(host, "systemctl", "start", "--no-block", unit)
    hosts.run(host, ["dd", "if=/dev/zero", f"of={filler}", "bs=1M"])
    try:
        yield
    finally:
        do(host, "systemctl", "stop", unit)
        # What the member has acknowledged meanwhile is on the small disk alone.
        do(
            host,
            "sh",
            "-ec",
            f"rm -f {filler}; umount {folder}; rm -rf {folder}/member; cp -a {small}/member {folder}/",
        )
        do(host, "umount", small)
        do(host, "systemctl", "start", "--no-block", unit)


def _onto_small_disk(host: str, folder: str, small: str) -> None:
    """A member alone, without what was kept aside of it, onto a disk that has room for one more log."""
    used_mb = int(do(host, "du", "-sm", f"{folder}/member").split()[0])
    size = f"size={used_mb + _LOG_MB}m"
    try:
        do(
            host,
            "sh",
            "-ec",
            f"mkdir -p {small}; mount -t tmpfs -o {size} tmpfs {small}; cp -a {folder}/member {small}/",
        )
        do(host, "sh", "-ec", f"chown --reference={folder} {small}; chmod --reference={folder} {small}")
        do(host, "mount", "--bind", small, folder)
    except LabError:
        hosts.run(host, ["umount", small])
        raise


@contextmanager
def wiped(names: Sequence[str], unit: str, folder: str) -> Iterator[None]:
    """Every copy of what a unit keeps is lost at once, and disks are empty."""
    with stopped(names, unit):
        for host in names:
            do(host, "sh", "-ec", f"rm -rf {folder}/member")
    yield


def flip(path: Path, every: int = 50) -> int:
    """Turn a byte in one page of `every` of a file, from the third on: etcd's database keeps its meta in the first two.

    How many were turned. The file must not be in use.
    """
    size, turned = path.stat().st_size, 0
    with path.open("r+b") as file:
        for offset in range(2 * _PAGE + 1000, size, every * _PAGE):
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 0xFF]))
            turned += 1
    return turned


def _pid(host: str, unit: str) -> int:
    """Of a unit's main process, as this machine counts."""
    own = int(do(host, "systemctl", "show", "--property=MainPID", "--value", unit))
    for pid in cgroups.members(hosts.group(host)):
        with suppress(OSError):
            numbers = re.search(r"^NSpid:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            if numbers and numbers[1].split()[1:] == [str(own)]:
                return pid
    raise LabError(f"{unit} does not run on {host}")


def _later(host: str, name: str, *argv: str) -> None:
    do(host, "systemd-run", "--quiet", f"--unit={name}", f"--on-active={AT_MOST_S}", *argv)


def _forget(host: str, name: str) -> None:
    hosts.run(host, ["systemctl", "stop", f"{name}.timer"])
