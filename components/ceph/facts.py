"""What storage hosts have found (`menagerie-disks --json`), compared with the spec and with each other. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from cluster.spec import Cluster
from components.ceph.names import of


class Device(NamedTuple):
    """A disk that Ceph is given: its full name in by-id, and the kind of disks that it is."""

    path: str
    disks: str


class Found(NamedTuple):
    """devices: host -> its disks. problems: sentences, each with the way out; with any, nothing may be rendered."""

    devices: dict[str, tuple[Device, ...]]
    problems: tuple[str, ...]


class _Disk(BaseModel):
    """What is asked of a disk. More is told of it."""

    name: str
    device: str | None
    disks: str | None
    state: str
    fsid: str | None


class _Facts(BaseModel):
    host: str
    disks: list[_Disk]
    wrong: list[str]


def parse(text: str, file: str) -> dict[str, Any]:
    """One host's facts. ValueError, with the file, where they are none."""
    try:
        told = json.loads(text)
        _Facts.model_validate(told)
        return {"host": told["host"], "disks": told["disks"], "wrong": told["wrong"]}
    except (ValueError, RecursionError):  # also pydantic's, which repeat what they refuse
        way_out = "write it on the host with: menagerie-disks --json > FILE"
        raise ValueError(f"{file} isn't what menagerie-disks --json prints; {way_out}") from None


def judge(cluster: Cluster, told: Iterable[Mapping[str, Any]], fsid: str | None = None) -> Found:
    """fsid: of the Ceph that runs already, whose OSDs keep their disks; None where none was made yet."""
    ceph = of(cluster)
    wanted = [host.name for pool in ceph.hosts for host in cluster.hosts.get(pool, ())]
    devices: dict[str, tuple[Device, ...]] = {}
    problems: list[str] = []
    for facts in told:
        host = facts["host"]
        if host not in wanted:
            problems.append(f"{host} is no storage host of {cluster.name}; leave its facts out")
        elif host in devices:
            problems.append(f"{host} has told its facts twice; leave one out")
        else:
            devices[host] = _devices(facts["disks"])
            problems += [f"CPH-007: {line}" for line in facts["wrong"]]
            problems += _strangers(host, facts["disks"], fsid)
            problems += _outdated(host, devices[host], cluster)
    missing = [host for host in wanted if host not in devices]
    if missing:
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        problems.append(f"no facts of {names}; run the role storage_host there and fetch menagerie-disks --json")
    return Found({host: devices[host] for host in wanted if host in devices}, tuple(problems))


def _devices(disks: Iterable[Mapping[str, Any]]) -> tuple[Device, ...]:
    return tuple(sorted(Device(disk["device"], disk["disks"]) for disk in disks if disk["device"]))


def _strangers(host: str, disks: Iterable[Mapping[str, Any]], fsid: str | None) -> Iterable[str]:
    """OSDs of another Ceph: an earlier one's data, or a disk from elsewhere."""
    for disk in disks:
        if disk["device"] and disk["state"] == "osd" and disk["fsid"] != fsid:
            whose = f"Ceph {disk['fsid']}" if disk["fsid"] else "a Ceph that its label doesn't name"
            ours = f"not of {fsid}" if fsid else "and no Ceph is known to run here (--fsid)"
            yield f"CPH-007: {host}:/dev/{disk['name']} holds an OSD of {whose}, {ours}. Wipe it, or remove it"


def _outdated(host: str, devices: Iterable[Device], cluster: Cluster) -> Iterable[str]:
    """Facts that were told under an older spec."""
    wanted = {name: kind.count for name, kind in of(cluster).disks.items()}
    counted = {name: sum(device.disks == name for device in devices) for name in {*wanted, *(d.disks for d in devices)}}
    for name, count in sorted(counted.items()):
        if count != wanted.get(name, 0):
            yield f"{host} told of {count} disks {name}, the spec says {wanted.get(name, 0)}; run the role there again"
