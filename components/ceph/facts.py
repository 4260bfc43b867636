"""Disks that storage hosts report (`menagerie-disks --json`), compared with the spec and with each other. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from cluster.spec import Cluster
from components.ceph.names import of


class Device(NamedTuple):
    """A disk for Ceph. path: its full name in by-id. disks: its kind in the spec."""

    path: str
    disks: str


class CheckedReports(NamedTuple):
    """The checked reports. devices: host -> its disks. problems: sentences that each say what to do.

    Do not render anything while there are problems.
    """

    devices: dict[str, tuple[Device, ...]]
    problems: tuple[str, ...]


class _Disk(BaseModel):
    """The fields that every disk must have. Reports hold more."""

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
    """Return one host's facts. Raises ValueError that names the file if the text is not such a report."""
    try:
        facts = json.loads(text)
        _Facts.model_validate(facts)
        return {"host": facts["host"], "disks": facts["disks"], "wrong": facts["wrong"]}
    except (ValueError, RecursionError):  # also pydantic's, which repeat what they refuse
        way_out = "write it on the host with: menagerie-disks --json > FILE"
        raise ValueError(f"{file} isn't what menagerie-disks --json prints; {way_out}") from None


def judge(cluster: Cluster, reports: Iterable[Mapping[str, Any]], fsid: str | None = None) -> CheckedReports:
    """Compare the reports of hosts with the spec.

    fsid: of the Ceph that already runs, whose OSDs keep their disks; None before there is one.
    """
    ceph = of(cluster)
    expected = [host.name for pool in ceph.hosts for host in cluster.hosts.get(pool, ())]
    devices: dict[str, tuple[Device, ...]] = {}
    problems: list[str] = []
    for facts in reports:
        host = facts["host"]
        if host not in expected:
            problems.append(f"{host} is not a storage host of {cluster.name}; remove its facts")
        elif host in devices:
            problems.append(f"{host} has two files of facts; remove one")
        else:
            devices[host] = _devices(facts["disks"])
            problems += [f"CPH-007: {line}" for line in facts["wrong"]]
            problems += _strangers(host, facts["disks"], fsid)
            problems += _outdated(host, devices[host], cluster)
    missing = [host for host in expected if host not in devices]
    if missing:
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        problems.append(f"no facts from {names}; run role storage_host there and fetch menagerie-disks --json")
    return CheckedReports({host: devices[host] for host in expected if host in devices}, tuple(problems))


def _devices(disks: Iterable[Mapping[str, Any]]) -> tuple[Device, ...]:
    return tuple(sorted(Device(disk["device"], disk["disks"]) for disk in disks if disk["device"]))


def _strangers(host: str, disks: Iterable[Mapping[str, Any]], fsid: str | None) -> Iterable[str]:
    """Yield a problem for each OSD of another Ceph: data of an earlier one, or a disk from elsewhere."""
    for disk in disks:
        if disk["device"] and disk["state"] == "osd" and disk["fsid"] != fsid:
            whose = f"Ceph {disk['fsid']}" if disk["fsid"] else "an unknown Ceph (its label has no fsid)"
            ours = f"not of {fsid}" if fsid else "and no Ceph is known to run here (--fsid)"
            yield f"CPH-007: {host}:/dev/{disk['name']} holds an OSD of {whose}, {ours}. Wipe the disk or remove it"


def _outdated(host: str, devices: Iterable[Device], cluster: Cluster) -> Iterable[str]:
    """Yield a problem for each kind of disk whose count differs from the spec: the facts may be older than the spec."""
    expected = {name: kind.count for name, kind in of(cluster).disks.items()}
    counted = {
        name: sum(device.disks == name for device in devices) for name in {*expected, *(d.disks for d in devices)}
    }
    for name, count in sorted(counted.items()):
        if count != expected.get(name, 0):
            yield (
                f"{host} reports {count} disks of kind {name}, the spec has {expected.get(name, 0)}; "
                "run role storage_host there again"
            )
