"""Faults of the lab's machines, each for the length of a block that starts when the effect shows (`tests.bench.effects`).

A fault that breaks a host from outside for longer than a moment also ends automatically (`AT_MOST_S`), by a timer on the
host, so the lab recovers even if the run is killed in the middle.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster.spec import RoleName
from etcd.templates import unit_name
from sandbox.lab import cgroups, hosts
from sandbox.lab.errors import LabError
from tests.bench import effects
from tests.bench.effects import Fsyncs, until_seen

AT_MOST_S = 600
_TABLE = "menagerie_fault"
_PAGE = 4096
_SPARE_MB = 8
"""Spare room on the small disk before it is filled."""
_KEY = _TABLE
"""Key that is written to an etcd with a slow disk, because there are few Events."""
_FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=10).read().decode())"


def do(host: str, *argv: str) -> str:
    """Run a command on a host, and return its output. LabError if it fails."""
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def killed(host: str, unit: str) -> Iterator[None]:
    """Kill a unit's processes with SIGKILL. systemd restarts the unit after its usual delay."""
    before = _main_pid(host, unit)
    do(host, "systemctl", "kill", "--signal=SIGKILL", unit)
    same = f"process {before} is still that of {unit}"
    until_seen(f"SIGKILL of {unit} on {host}", lambda: same if _asked_pid(host, unit) == before else "")
    yield


@contextmanager
def paused(host: str, unit: str) -> Iterator[None]:
    """Stop a unit with SIGSTOP, like a swapping machine or a hypervisor without CPU. The unit can't know that it slept."""
    pid = _main_pid(host, unit)
    _later(host, f"{_TABLE}-go-on", "systemctl", "kill", "--signal=SIGCONT", unit)
    try:
        do(host, "systemctl", "kill", "--signal=SIGSTOP", unit)
        until_seen(f"SIGSTOP of {unit} on {host}", lambda: effects.not_paused(do(host, "cat", f"/proc/{pid}/status")))
        yield
    finally:
        do(host, "systemctl", "kill", "--signal=SIGCONT", unit)
        _forget(host, f"{_TABLE}-go-on")


@contextmanager
def stopped(names: Sequence[str], unit: str) -> Iterator[None]:
    """Stop a unit on several hosts at once: if only one stops, it hands over its leadership."""
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda host: _later(host, f"{_TABLE}-start", "systemctl", "start", unit), names))
            list(pool.map(lambda host: do(host, "systemctl", "stop", unit), names))
        until_seen(
            f"stopping {unit}",
            lambda: ", ".join(f"it still runs on {name}" for name in names if _asked_pid(name, unit)),
        )
        yield
    finally:
        for host in names:
            do(host, "systemctl", "start", "--no-block", unit)
            _forget(host, f"{_TABLE}-start")


@contextmanager
def cut(host: str, addresses: Sequence[str], share: int = 100) -> Iterator[None]:
    """Drop packets between a host and some addresses in both directions, `share` per cent of them."""
    _later(host, f"{_TABLE}-join", "nft", "delete", "table", "inet", _TABLE)
    do(host, "nft", cut_rules(addresses, share))
    try:
        listing = ("nft", "list", "table", "inet", _TABLE)
        until_seen(f"cutting {host} from {', '.join(addresses)}", lambda: effects.not_cut(do(host, *listing), share))
        yield
    finally:
        do(host, "nft", "delete", "table", "inet", _TABLE)
        _forget(host, f"{_TABLE}-join")


def cut_rules(addresses: Sequence[str], share: int) -> str:
    """Return rules for nft. Each direction counts all packets, then the ones that it drops."""
    lose = "" if share >= 100 else f"numgen random mod 100 < {share} "
    others = ", ".join(addresses)

    def chain(name: str, address: str) -> str:
        which = f"ip {address} {{ {others} }}"
        hook = f"type filter hook {name} priority -300;"
        return f" chain {name} {{ {hook} {which} counter; {which} {lose}counter drop; }}\n"

    return f"table inet {_TABLE} {{\n{chain('input', 'saddr')}{chain('output', 'daddr')}}}\n"


@contextmanager
def slow_disk(host: str, role: RoleName, metrics_port: int, delay_ms: int) -> Iterator[None]:
    """Delay every fdatasync of a member. etcd answers a write only after an fdatasync (etcd.io, "Hardware")."""
    url, etcdctl = f"http://127.0.0.1:{metrics_port}/metrics", f"/usr/local/sbin/etcdctl-{role}"

    def counted() -> Fsyncs:
        return Fsyncs.of(do(host, "python3", "-c", _FETCH, url))

    def missing() -> str:
        hosts.run(host, [etcdctl, "put", _KEY, "slow"])  # it may fail; trying is enough
        return effects.not_slower(before, counted(), delay_ms / 1000)

    try:
        with slowed(_pid(host, unit_name(role)), delay_ms):
            before = counted()
            until_seen(f"a delay of {delay_ms} ms for the disk of etcd {role} on {host}", missing)
            yield
    finally:
        hosts.run(host, [etcdctl, "del", _KEY])


@contextmanager
def slowed(pid: int, delay_ms: int) -> Iterator[None]:
    """Delay every fdatasync of a process of this machine. LabError if strace can't attach to it."""
    delay = f"inject=fdatasync:delay_enter={delay_ms * 1000}"
    command = ["strace", "-f", "-p", str(pid), "-e", "trace=fdatasync", "-e", "signal=none", "-e", delay]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen([*command, "-o", os.devnull], stderr=errors) as tracer,
    ):

        def missing() -> str:
            if tracer.poll() is None:
                return effects.not_traced(pid, tracer.pid)
            errors.seek(0)
            raise LabError(f"strace exited with {tracer.returncode}: {errors.read().strip()[-500:]}")

        try:
            until_seen(f"strace of process {pid}", missing)
            yield
            if Path(f"/proc/{pid}").exists():
                missing()  # raises if strace has detached too early
        finally:
            # strace detaches from its process on SIGTERM. If strace itself is killed, the process dies too.
            tracer.terminate()
            tracer.wait(AT_MOST_S)


@contextmanager
def full_disk(host: str, unit: str, folder: str) -> Iterator[None]:
    """Restart a unit with its folder on a small separate file system that is full to the last byte.

    A running member has already allocated its log and its database, and might not need more space during the test.
    """
    small = f"/run/{_TABLE}"
    do(host, "systemctl", "stop", unit)
    try:
        _onto_small_disk(host, folder, small)
    except LabError:
        do(host, "systemctl", "start", "--no-block", unit)
        raise
    since = do(host, "date", "+%s").strip()
    journal = ("journalctl", f"--unit={unit}", f"--since=@{since}", "--output=cat", "--no-pager")
    try:
        do(host, "systemctl", "start", "--no-block", unit)
        until_seen(f"filling {folder} on {host}", lambda: effects.not_full(do(host, *journal)))
        yield
    finally:
        do(host, "systemctl", "stop", unit)
        # What the member has acknowledged meanwhile is only on the small disk.
        do(
            host,
            "sh",
            "-ec",
            f"rm {small}/filler; umount {folder}; rm -rf {folder}/member; cp -a {small}/member {folder}/",
        )
        do(host, "umount", small)
        do(host, "systemctl", "start", "--no-block", unit)


def _onto_small_disk(host: str, folder: str, small: str) -> None:
    """Copy only the member's own data, with holes for zeros, onto a small disk, then fill the disk."""
    used_mb = int(do(host, "du", "-sm", f"{folder}/member").split()[0])
    size = f"size={used_mb + _SPARE_MB}m"
    try:
        do(host, "sh", "-ec", f"mkdir -p {small}; mount -t tmpfs -o {size} tmpfs {small}")
        do(host, "sh", "-ec", f"cp -a --sparse=always {folder}/member {small}/; cat /dev/zero > {small}/filler || true")
        do(host, "sh", "-ec", f"chown --reference={folder} {small}; chmod --reference={folder} {small}")
        do(host, "mount", "--bind", small, folder)
    except LabError:
        hosts.run(host, ["umount", small])
        raise


@contextmanager
def wiped(names: Sequence[str], unit: str, folder: str) -> Iterator[None]:
    """Delete every copy of a unit's data at once."""
    member = f"{folder}/member"
    with stopped(names, unit):
        for host in names:
            do(host, "sh", "-ec", f"test -e {member}; rm -rf {member}; test ! -e {member}")
    yield


def flip(path: Path, every: int = 50) -> int:
    """Flip a byte in one of every `every` pages of a file, from the third on: the first two have the meta of etcd's database.

    Return how many were flipped. The file must not be in use.
    """
    size, flipped = path.stat().st_size, 0
    with path.open("r+b") as file:
        for offset in range(2 * _PAGE + 1000, size, every * _PAGE):
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 0xFF]))
            flipped += 1
    return flipped


def _pid(host: str, unit: str) -> int:
    """Return the PID of a unit's main process on this machine."""
    host_pid = _main_pid(host, unit)
    for pid in cgroups.members(hosts.group(host)):
        with suppress(OSError):
            match = re.search(r"^NSpid:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            if match and match[1].split()[1:] == [str(host_pid)]:
                return pid
    raise LabError(f"process {host_pid} of {unit} on {host} is not among those of the host")


def _main_pid(host: str, unit: str) -> int:
    """Return the PID of a unit's main process on its host. LabError if the unit does not run."""
    if pid := _asked_pid(host, unit):
        return pid
    raise LabError(f"{unit} does not run on {host}")


def _asked_pid(host: str, unit: str) -> int:
    """Return the PID of a unit's main process on its host; 0 if it does not run."""
    return int(do(host, "systemctl", "show", "--property=MainPID", "--value", unit))


def _later(host: str, name: str, *argv: str) -> None:
    do(host, "systemd-run", "--quiet", f"--unit={name}", f"--on-active={AT_MOST_S}", *argv)


def _forget(host: str, name: str) -> None:
    hosts.run(host, ["systemctl", "stop", f"{name}.timer"])
