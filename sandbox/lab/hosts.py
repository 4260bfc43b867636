"""Hosts: Debian with systemd, each in a network namespace and control group of its own.

Cloud hosts, workers in the region among them, are configured by their user data alone and let nobody in. On-prem hosts
answer SSH.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from cluster.fields import did_you_mean
from sandbox.lab import cgroups, disk, loops, mounts, networks, nspawn, plan, processes, seed, state, volumes
from sandbox.lab.errors import LabError
from sandbox.lab.networks import Cable
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

# What machines at sites call their port. Cards' names come from udev, which no container has; eth0 is no name to rely on.
_PORT = "node0"
# These must not sit on the overlay: containerd makes overlays of its own, etcd wants a true fsync.
_OFF_OVERLAY = ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd")
_STOP_SECONDS = 10.0
_SUPERVISOR = "systemd-nspawn"
# With --keep-unit nspawn ends with 133 when the host reboots, for others to start it again. Control groups do not survive a
# reboot: a kubelet that finds those of its former pods waits 3 s for each. $0 is the host's own group.
_REBOOTS = """while "$@"; [ $? -eq 133 ]; do
    find /sys/fs/cgroup/$0 /sys/fs/cgroup/*/$0 -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
done"""
# /proc/sys/net is the host's own and writable, the rest of /proc/sys is the machine's and not.
_ENVIRONMENT = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"} | nspawn.ENVIRONMENT


@dataclass(frozen=True)
class HostSpec:
    """A host to make.

    segment: "cloud", "workers" or ``rack/<name>``. volumes: mount path -> volume name.
    host_key: OpenSSH private key that an on-prem host shows; authorized_keys: lines of root's.
    memory_bytes: limit of the whole host. disks: empty ones, name in /dev/disk/by-id -> bytes.
    """

    name: str
    kind: Literal["cloud", "worker", "onprem"]
    segment: str
    address: str
    user_data: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    authorized_keys: tuple[str, ...] = ()
    host_key: str = field(default="", repr=False)
    memory_bytes: int = 3 * 2**30
    disks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HostState:
    """What a host was made as."""

    kind: str
    address: str
    segment: str


def create(spec: HostSpec, lab: LabSpec) -> None:
    """Start a fresh host; what is left of an earlier one of this name goes first. Volumes are kept.

    Returns when its systemd runs; an on-prem host also answers SSH by then.
    Raises LabError with the end of its console when it does not start.
    """
    delete(spec.name)
    with state.space():
        _start(spec, lab)
    _wait_for(spec)


def _start(spec: HostSpec, lab: LabSpec) -> None:
    home = _home(spec.name)
    home.mkdir(parents=True)
    record = {"kind": spec.kind, "address": spec.address, "segment": spec.segment}
    cables = [asdict(cable) for cable in _cables(spec, lab)]
    state.write(home / "host.json", record | {"cables": cables})
    root = home / "root"
    mounts.overlay(Path(lab.image), home / "upper", home / "work", root)
    gateway = plan.segments(lab)[spec.segment].gateway
    seed.write(root, seed.Identity(spec.name, spec.address, str(gateway or "")))
    if spec.kind == "onprem":
        seed.write_onprem(root, spec.authorized_keys, spec.host_key)
    else:
        seed.write_cloud(root, spec.name, spec.user_data)
    networks.plug_in(spec.name, _cables(spec, lab), lab)
    disks = loops.plug_in(home / "disks", spec.disks)
    seed.write_disks(root, disks)
    console(spec.name).unlink(missing_ok=True)
    processes.start(
        Daemon(_unit(spec.name), _nspawn(spec, root, disks), environment=_ENVIRONMENT, memory_bytes=spec.memory_bytes)
    )


def read(name: str) -> HostState | None:
    """The host, None when it is gone or dead."""
    return made(name) if leader(name) is not None else None


def made(name: str) -> HostState | None:
    """The host, a dead one too, None when it is gone."""
    record = state.read(_home(name) / "host.json")
    return HostState(record["kind"], record["address"], record["segment"]) if record else None


def made_s(name: str) -> float:
    """Unix time at which a host was made, 0 of one that is gone."""
    record = _home(name) / "host.json"
    return record.stat().st_mtime if record.exists() else 0.0


def delete(name: str) -> None:
    """Shut the host down and remove all but its volumes. Nothing happens when it is gone."""
    if leader(name) is not None:
        _shut_down(name)
    cgroups.kill(group(name))
    cgroups.remove(group(name))
    record = state.read(_home(name) / "host.json") or {}
    networks.unplug(name, tuple(Cable(**cable) for cable in record.get("cables", ())))
    nspawn.forget(networks.netns(name))
    loops.remove(_home(name) / "disks")
    disk.remove(_home(name))


def kill(name: str) -> None:
    """Cut the host's power: every process of it dies at once. Its disks stay as they are.

    Raises LabError when there is no such host.
    """
    _refuse_unknown(name)
    cgroups.kill(group(name))


def known() -> tuple[str, ...]:
    """Names of the hosts that were made and not deleted, dead ones too."""
    folder = state.folder("hosts")
    return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def leader(name: str) -> int | None:
    """Process id of the host's systemd, None when the host does not run."""
    seen = {pid: _look(pid) for pid in processes.pids(_unit(name))}
    for pid, (comm, parent) in seen.items():
        if comm in ("systemd", "init") and seen.get(parent, ("", 0))[0] == _SUPERVISOR:
            return pid
    return None


def group(name: str) -> str:
    """The host's control group, below each hierarchy."""
    return processes.group(_unit(name))


def console(name: str) -> Path:
    """File with what the host wrote to its console since it was made."""
    return processes.log_path(_unit(name))


def inside(name: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs a command inside the host. Raises LabError when the host does not run."""
    _refuse_unknown(name)
    pid = leader(name)
    if pid is None:
        raise LabError(
            f"{name} does not run; `.venv/bin/python -m sandbox.lab` shows which hosts do, `./menagerie up lab` replaces it"
        )
    return ["nsenter", "--target", str(pid), "--all", *argv]


def run(name: str, argv: Sequence[str], timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command inside the host and wait for it, for tests and proofs; seconds.

    Nothing that configures a host uses this. Raises LabError when the host does not run or the command does not end.
    """
    try:
        return subprocess.run(inside(name, argv), capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"{argv[0]} did not end within {timeout:g} s on {name}") from None


def _refuse_unknown(name: str) -> None:
    if name not in known():
        hint = did_you_mean(name, known()) or "; `.venv/bin/python -m sandbox.lab` lists the hosts"
        raise LabError(f"the lab has no host {name}{hint}")


def _home(name: str) -> Path:
    return state.folder("hosts", name)


def _unit(name: str) -> str:
    return f"host-{name}"


def _cables(spec: HostSpec, lab: LabSpec) -> tuple[Cable, ...]:
    if spec.kind == "onprem":
        return (Cable(spec.segment, spec.address, ("default",), name=_PORT),)
    own = plan.store_address(lab.nodes, spec.address)
    reached = "default" if spec.kind == "worker" else str(plan.SERVICES_RANGE)
    return (
        Cable(spec.segment, spec.address, (reached,)),
        Cable(plan.STORE, str(own), (str(plan.STORE_ADDRESS),), guarded=True),
    )


def _nspawn(spec: HostSpec, root: Path, disks: Mapping[str, Path]) -> list[str]:
    binds = {mount: volumes.ensure(volume) for mount, volume in spec.volumes.items()}
    for mount in _OFF_OVERLAY:
        if mount not in binds:
            binds[mount] = _home(spec.name) / "data" / Path(mount).name
            binds[mount].mkdir(parents=True)
    return [
        *("sh", "-c", _REBOOTS, group(spec.name)),
        *nspawn.command(networks.netns(spec.name), root),
        "--boot",
        f"--hostname={spec.name}",
        "--console=read-only",
        "--capability=all",
        "--system-call-filter=@keyring bpf",
        # The kubelet reads the kernel's messages to see what ran out of memory.
        *([] if spec.kind == "cloud" else ["--bind=/dev/kmsg"]),
        *(f"--bind={folder}:{mount}" for mount, folder in sorted(binds.items())),
        *(f"--bind={device}" for device in disks.values()),
    ]


def _wait_for(spec: HostSpec, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while leader(spec.name) is None or (spec.kind == "onprem" and not seed.answers_ssh(spec.address)):
        if time.monotonic() > deadline:
            tail = processes.log_tail(_unit(spec.name))
            raise LabError(f"{spec.name} did not start within {seconds:g} s; its console ends with:\n{tail}")
        time.sleep(0.1)


def _shut_down(name: str) -> None:
    for pid in processes.pids(_unit(name)):
        if _look(pid)[0] == _SUPERVISOR:
            # nspawn passes a request to power off on to the host's systemd.
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while leader(name) is not None and time.monotonic() < deadline:
        time.sleep(0.05)


def _look(pid: int) -> tuple[str, int]:
    """Name and parent of a process; the name is "" when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    name, _, rest = stat.partition("(")[2].rpartition(")")
    status, parent, *_ = rest.split()
    return ("" if status == "Z" else name), int(parent)
