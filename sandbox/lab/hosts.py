"""Hosts: Debian with systemd, each in a separate network namespace and control group.

Cloud hosts, including workers in the region, are configured by user data only and accept no logins. On-prem hosts
answer SSH.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from cluster.fields import did_you_mean
from cluster.waiting import poll
from sandbox.lab import cgroups, disk, loops, mounts, networks, nspawn, plan, processes, seed, state, volumes
from sandbox.lab.errors import LabError
from sandbox.lab.networks import Cable
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

# The network port's name on machines at sites. Names of network cards come from udev, which containers do not have;
# eth0 would not be a reliable name.
_PORT = "node0"
# Not on the overlay: containerd mounts overlays itself, and etcd needs a real fsync.
_OFF_OVERLAY = ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd")
_STOP_SECONDS = 10.0
_SUPERVISOR = "systemd-nspawn"
# With --keep-unit nspawn exits with 133 when the host reboots, and its caller must start it again. Control groups do
# not survive a reboot: a kubelet waits 3 s for each control group left by its former pods. $0 is the host's own group.
_REBOOTS = """while "$@"; [ $? -eq 133 ]; do
    find /sys/fs/cgroup/$0 /sys/fs/cgroup/*/$0 -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
done"""
# /proc/sys/net belongs to the host and is writable; the rest of /proc/sys belongs to the machine and is not.
_ENVIRONMENT = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"} | nspawn.ENVIRONMENT


@dataclass(frozen=True)
class HostSpec:
    """A host to create.

    segment: "cloud", "workers" or ``rack/<name>``. volumes: mount path -> volume name.
    host_key: OpenSSH private host key of an on-prem host; authorized_keys: lines for root.
    memory_bytes: limit of the whole host. disks: empty disks, name in /dev/disk/by-id -> bytes.
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
    """The properties that a host was created with."""

    kind: str
    address: str
    segment: str


def create(spec: HostSpec, lab: LabSpec) -> None:
    """Start a new host; remove what is left of an earlier host of this name first. Volumes are kept.

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
    """Return the host, None when it is missing or dead."""
    return find(name) if leader(name) is not None else None


def find(name: str) -> HostState | None:
    """Return the host, even a dead one; None when it is missing."""
    record = state.read(_home(name) / "host.json")
    return HostState(record["kind"], record["address"], record["segment"]) if record else None


def made_s(name: str) -> float:
    """Return the Unix time at which a host was created, 0 when it is missing."""
    record = _home(name) / "host.json"
    return record.stat().st_mtime if record.exists() else 0.0


def delete(name: str) -> None:
    """Shut the host down and remove everything except its volumes. Do nothing when it is gone."""
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
    """Cut the host's power: all its processes die at once. Its disks stay as they are.

    Raises LabError when there is no such host.
    """
    _refuse_unknown(name)
    cgroups.kill(group(name))


def created_hosts() -> tuple[str, ...]:
    """Return the names of all hosts that were created and not deleted, including dead ones."""
    folder = state.folder("hosts")
    return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def leader(name: str) -> int | None:
    """Return the process ID of the host's systemd, None when the host does not run."""
    running = {pid: _process(pid) for pid in processes.pids(_unit(name))}
    for pid, (comm, parent) in running.items():
        if comm in ("systemd", "init") and running.get(parent, ("", 0))[0] == _SUPERVISOR:
            return pid
    return None


def group(name: str) -> str:
    """Return the host's control group, below each hierarchy."""
    return processes.group(_unit(name))


def console(name: str) -> Path:
    """Return the file with the host's console output since it was created."""
    return processes.log_path(_unit(name))


def inside(name: str, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` inside the host. Raises LabError when the host does not run."""
    _refuse_unknown(name)
    pid = leader(name)
    if pid is None:
        raise LabError(
            f"{name} is not running; `.venv/bin/python -m sandbox.lab` shows which hosts are, `./menagerie up lab` replaces it"
        )
    return ["nsenter", "--target", str(pid), "--all", *argv]


def run(name: str, argv: Sequence[str], timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command inside the host and wait for it; for tests and proofs. timeout: seconds.

    Nothing that configures a host uses this. Raises LabError when the host does not run or the command times out.
    """
    try:
        return subprocess.run(inside(name, argv), capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"{argv[0]} did not finish within {timeout:g} s on {name}") from None


def _refuse_unknown(name: str) -> None:
    if name not in created_hosts():
        hint = did_you_mean(name, created_hosts()) or "; `.venv/bin/python -m sandbox.lab` lists the hosts"
        raise LabError(f"the lab has no host {name}{hint}")


def _home(name: str) -> Path:
    return state.folder("hosts", name)


def _unit(name: str) -> str:
    return f"host-{name}"


def _cables(spec: HostSpec, lab: LabSpec) -> tuple[Cable, ...]:
    if spec.kind == "onprem":
        return (Cable(spec.segment, spec.address, ("default",), name=_PORT),)
    store_address = plan.store_address(lab.nodes, spec.address)
    destination = "default" if spec.kind == "worker" else str(plan.SERVICES_RANGE)
    return (
        Cable(spec.segment, spec.address, (destination,)),
        Cable(plan.STORE, str(store_address), (str(plan.STORE_ADDRESS),), guarded=True),
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
        # The kubelet reads the kernel log to detect processes killed for lack of memory.
        *([] if spec.kind == "cloud" else ["--bind=/dev/kmsg"]),
        *(f"--bind={folder}:{mount}" for mount, folder in sorted(binds.items())),
        *(f"--bind={device}" for device in disks.values()),
    ]


def _wait_for(spec: HostSpec, seconds: float = 60) -> None:
    def has_started() -> bool:
        return leader(spec.name) is not None and (spec.kind != "onprem" or seed.answers_ssh(spec.address))

    if not poll(has_started, seconds, 0.1):
        tail = processes.log_tail(_unit(spec.name))
        raise LabError(f"{spec.name} did not start within {seconds:g} s; its console ends with:\n{tail}")


def _shut_down(name: str) -> None:
    for pid in processes.pids(_unit(name)):
        if _process(pid)[0] == _SUPERVISOR:
            # On SIGTERM nspawn asks the host's systemd to power off.
            os.kill(pid, signal.SIGTERM)
    poll(lambda: leader(name) is None, _STOP_SECONDS, 0.05)


def _process(pid: int) -> tuple[str, int]:
    """Return name and parent of a process; the name is "" when it has exited."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    name, _, rest = stat.partition("(")[2].rpartition(")")
    status, parent, *_ = rest.split()
    return ("" if status == "Z" else name), int(parent)
