"""Faults of the lab's machines, each for the length of a block, which begins once its effect was seen (`tests.bench.effects`).

Whatever breaks a host from outside for longer than a moment also ends by itself (`AT_MOST_S`), by a timer of the host's own:
a run that is killed in the middle leaves a lab that heals.
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
from tests.bench.effects import Fsyncs, seen

AT_MOST_S = 600
_TABLE = "menagerie_fault"
_PAGE = 4096
_SPARE_MB = 8
"""On a small disk, before it is filled."""
_KEY = _TABLE
"""What is written to an etcd whose disk is slow: events are few."""
_FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=10).read().decode())"


def do(host: str, *argv: str) -> str:
    """What a command prints on a host. LabError where it fails."""
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def killed(host: str, unit: str) -> Iterator[None]:
    """SIGKILL for a unit's processes; systemd starts it again after its own delay."""
    before = _main_pid(host, unit)
    do(host, "systemctl", "kill", "--signal=SIGKILL", unit)
    same = f"process {before} is still that of {unit}"
    seen(f"SIGKILL of {unit} on {host}", lambda: same if _asked_pid(host, unit) == before else "")
    yield


@contextmanager
def paused(host: str, unit: str) -> Iterator[None]:
    """SIGSTOP, as a machine that swaps or a hypervisor that takes the processor away; it does not know that it slept."""
    pid = _main_pid(host, unit)
    _later(host, f"{_TABLE}-go-on", "systemctl", "kill", "--signal=SIGCONT", unit)
    try:
        do(host, "systemctl", "kill", "--signal=SIGSTOP", unit)
        seen(f"SIGSTOP of {unit} on {host}", lambda: effects.not_paused(do(host, "cat", f"/proc/{pid}/status")))
        yield
    finally:
        do(host, "systemctl", "kill", "--signal=SIGCONT", unit)
        _forget(host, f"{_TABLE}-go-on")


@contextmanager
def stopped(names: Sequence[str], unit: str) -> Iterator[None]:
    """A unit of several hosts, stopped at once: one that is told alone to stop hands its leadership on."""
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda host: _later(host, f"{_TABLE}-start", "systemctl", "start", unit), names))
            list(pool.map(lambda host: do(host, "systemctl", "stop", unit), names))
        seen(f"stopping {unit}", lambda: ", ".join(f"it runs on {name}" for name in names if _asked_pid(name, unit)))
        yield
    finally:
        for host in names:
            do(host, "systemctl", "start", "--no-block", unit)
            _forget(host, f"{_TABLE}-start")


@contextmanager
def cut(host: str, addresses: Sequence[str], share: int = 100) -> Iterator[None]:
    """Packets between a host and some addresses are dropped, `share` of a hundred of them, in both directions."""
    _later(host, f"{_TABLE}-join", "nft", "delete", "table", "inet", _TABLE)
    do(host, "nft", cut_rules(addresses, share))
    try:
        listing = ("nft", "list", "table", "inet", _TABLE)
        seen(f"cutting {host} from {', '.join(addresses)}", lambda: effects.not_cut(do(host, *listing), share))
        yield
    finally:
        do(host, "nft", "delete", "table", "inet", _TABLE)
        _forget(host, f"{_TABLE}-join")


def cut_rules(addresses: Sequence[str], share: int) -> str:
    """For nft: each direction counts what comes by, then what it drops of it."""
    lose = "" if share >= 100 else f"numgen random mod 100 < {share} "
    others = ", ".join(addresses)

    def chain(name: str, address: str) -> str:
        which = f"ip {address} {{ {others} }}"
        hook = f"type filter hook {name} priority -300;"
        return f" chain {name} {{ {hook} {which} counter; {which} {lose}counter drop; }}\n"

    return f"table inet {_TABLE} {{\n{chain('input', 'saddr')}{chain('output', 'daddr')}}}\n"


@contextmanager
def slow_disk(host: str, role: RoleName, metrics_port: int, delay_ms: int) -> Iterator[None]:
    """Every fdatasync of a member takes so much longer. etcd answers a write only after one (etcd.io, "Hardware")."""
    url, etcdctl = f"http://127.0.0.1:{metrics_port}/metrics", f"/usr/local/sbin/etcdctl-{role}"

    def counted() -> Fsyncs:
        return Fsyncs.of(do(host, "python3", "-c", _FETCH, url))

    def missing() -> str:
        hosts.run(host, [etcdctl, "put", _KEY, "slow"])  # it may fail: what counts is that it was tried
        return effects.not_slower(before, counted(), delay_ms / 1000)

    try:
        with slowed(_pid(host, unit_name(role)), delay_ms):
            before = counted()
            seen(f"a delay of {delay_ms} ms for the disk of etcd {role} on {host}", missing)
            yield
    finally:
        hosts.run(host, [etcdctl, "del", _KEY])


@contextmanager
def slowed(pid: int, delay_ms: int) -> Iterator[None]:
    """Every fdatasync of a process of this machine takes so much longer. LabError where strace does not get hold of it."""
    delay = f"inject=fdatasync:delay_enter={delay_ms * 1000}"
    command = ["strace", "-f", "-p", str(pid), "-e", "trace=fdatasync", "-e", "signal=none", "-e", delay]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen([*command, "-o", os.devnull], stderr=said) as tracer,
    ):

        def missing() -> str:
            if tracer.poll() is None:
                return effects.not_traced(pid, tracer.pid)
            said.seek(0)
            raise LabError(f"strace ended with {tracer.returncode}: {said.read().strip()[-500:]}")

        try:
            seen(f"strace of process {pid}", missing)
            yield
            if Path(f"/proc/{pid}").exists():
                missing()  # raises where it has let go too early
        finally:
            # strace lets go of what it traces when it is asked to end, and takes the traced along when it is killed.
            tracer.terminate()
            tracer.wait(AT_MOST_S)


@contextmanager
def full_disk(host: str, unit: str, folder: str) -> Iterator[None]:
    """A unit's folder on a file system of its own, small and full to the last byte, when it starts.

    A member that runs has its log and its database allocated, and might not ask for more while anybody looks.
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
        seen(f"filling {folder} on {host}", lambda: effects.not_full(do(host, *journal)))
        yield
    finally:
        do(host, "systemctl", "stop", unit)
        # What the member has acknowledged meanwhile is on the small disk alone.
        do(
            host,
            "sh",
            "-ec",
            f"rm {small}/filler; umount {folder}; rm -rf {folder}/member; cp -a {small}/member {folder}/",
        )
        do(host, "umount", small)
        do(host, "systemctl", "start", "--no-block", unit)


def _onto_small_disk(host: str, folder: str, small: str) -> None:
    """A member alone, without what was kept aside of it and with holes for its zeros, onto a disk that is then filled."""
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
    """Every copy of what a unit keeps is lost at once, and disks are empty."""
    member = f"{folder}/member"
    with stopped(names, unit):
        for host in names:
            do(host, "sh", "-ec", f"test -e {member}; rm -rf {member}; test ! -e {member}")
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
    own = _main_pid(host, unit)
    for pid in cgroups.members(hosts.group(host)):
        with suppress(OSError):
            numbers = re.search(r"^NSpid:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            if numbers and numbers[1].split()[1:] == [str(own)]:
                return pid
    raise LabError(f"process {own} of {unit} on {host} is not among those of the host")


def _main_pid(host: str, unit: str) -> int:
    """As the host counts. LabError where the unit does not run: nothing can be done to it."""
    if pid := _asked_pid(host, unit):
        return pid
    raise LabError(f"{unit} does not run on {host}")


def _asked_pid(host: str, unit: str) -> int:
    """0 where it does not run."""
    return int(do(host, "systemctl", "show", "--property=MainPID", "--value", unit))


def _later(host: str, name: str, *argv: str) -> None:
    do(host, "systemd-run", "--quiet", f"--unit={name}", f"--on-active={AT_MOST_S}", *argv)


def _forget(host: str, name: str) -> None:
    hosts.run(host, ["systemctl", "stop", f"{name}.timer"])
