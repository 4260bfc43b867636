"""What a host of an etcd member is given: unit, certificates by reference, programs.

The same function and the same template serve every etcd of a cluster.

Losing a host is not losing a member: the data folder sits on a volume of its own, and a member that
starts with its data takes its identity from there (--initial-cluster-* is then not read). So a new
host with the old volume, the old name and the old address goes on where the old one stopped.

Losing the volume is losing the member. Started with an empty folder it refuses, with "has already
been bootstrapped": its peers remember it, and it must not vote as if it had forgotten nothing. The
way back is `etcdctl member remove` and `member add`, with --initial-cluster-state=existing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.audit import programs
from cluster.files import Disk, Download, HostConfig, HostFile, Refresh, SecretRef
from cluster.spec import Cluster, RoleName
from etcd import agent, backups
from etcd.flags import flags, pki_dir
from etcd.members import client_urls, data_dir, member, members
from etcd.refreshing import refresh
from etcd.templates import USER, render, unit_name
from network.addresses import ROLES, AddressPlan

_OWNER = f"{USER}:{USER}"
_T = TypeVar("_T")


def host_config(
    cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan, source: ArtefactSource
) -> HostConfig:
    """All that the host of this member needs for this etcd; see `merge` for a host with two.

    Raises ValueError when the etcd has no such member, and KeyError when `source` has no checksum
    for etcd's archive, or for restic where the etcd has backups.
    """
    archive = catalogue(cluster.spec.kubernetes.version)["etcd"]
    source.checksum(archive)
    own = HostConfig(
        files=_files(cluster, role, member_name, plan),
        secrets=secrets(role, member_name),
        downloads=(program_download(archive, "etcd", "etcdctl", "etcdutl"),),
        users=(USER,),
        start=(unit_name(role),),
        refresh=refresh(cluster, role, member_name, plan),
    )
    return merge(
        agent.host_config(cluster, member(cluster, role, member_name, plan).host, plan),
        own,
        backups.host_config(cluster, role, member_name, plan, source),
    )


def host_configs(
    cluster: Cluster,
    plan: AddressPlan,
    source: ArtefactSource,
    disks: Callable[[RoleName], Disk] | None = None,
) -> dict[str, HostConfig]:
    """Host name -> what it needs for all members that run on it. Hosts of main come first.

    disks: the data disk of an etcd's members, see `data_disk`; None where something else mounts it.
    """
    wanted: dict[str, list[HostConfig]] = {}
    for role in ROLES:
        own = (disks(role),) if disks else ()
        for each in members(cluster, role, plan):
            config = host_config(cluster, role, each.name, plan, source)
            wanted.setdefault(each.host, []).append(replace(config, disks=own))
    return {host: merge(*configs) for host, configs in wanted.items()}


def merge(*configs: HostConfig) -> HostConfig:
    """One host's configuration out of several; what they have in common appears once.

    Raises ValueError when two of them give the same path different contents.
    """
    files = _once(file for config in configs for file in config.files)
    paths = [file.path for file in files]
    for path in paths:
        if paths.count(path) > 1:
            raise ValueError(f"{path} has two different contents; give each etcd of the host its own path")
    return HostConfig(
        disks=_once(disk for config in configs for disk in config.disks),
        files=files,
        secrets=_once(secret for config in configs for secret in config.secrets),
        downloads=_once(download for config in configs for download in config.downloads),
        users=_once(user for config in configs for user in config.users),
        start=_once(unit for config in configs for unit in config.start),
        packages=_once(package for config in configs for package in config.packages),
        refresh=_one_refresh([config.refresh for config in configs if config.refresh]),
    )


def _one_refresh(several: list[Refresh]) -> Refresh | None:
    """It reports to the first etcd of the host."""
    if not several:
        return None
    return replace(
        several[0],
        consumers=_once(consumer for each in several for consumer in each.consumers),
        programs=_once(program for each in several for program in each.programs),
    )


def data_disk(cluster: Cluster, role: RoleName, devices: tuple[str, ...], size: int = 0) -> Disk:
    """The disk with the data of this etcd's members; `devices` and `size` as the cloud names and makes it."""
    return Disk(data_dir(cluster, role), f"etcd-{role}", devices, size=size)


def unit(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> str:
    """Text of the member's systemd unit."""
    return render(
        "etcd.service.j2",
        cluster=cluster.name,
        role=role,
        member=member(cluster, role, member_name, plan).name,
        data_dir=data_dir(cluster, role),
        flags=flags(cluster, role, member_name, plan),
    )


def secrets(role: RoleName, member_name: str) -> tuple[SecretRef, ...]:
    """The member's certificates and keys, by their names in the cluster's secret store.

    kube-apiserver has one client certificate for all its etcds, signed by main's CA. So other etcds
    accept main's CA from clients, beside their own, and only their own from peers. A certificate
    signed by their CA opens nothing at main.
    """
    pki = pki_dir(role)
    client_cas: tuple[RoleName, ...] = ("main",) if role == "main" else ("main", role)
    return (
        SecretRef(f"etcd-{role}-ca.crt", f"{pki}/ca.crt", 0o644, _OWNER),
        *(SecretRef(f"etcd-{each}-ca.crt", f"{pki}/client-ca.crt", 0o644, _OWNER) for each in client_cas),
        SecretRef(f"{member_name}-server.crt", f"{pki}/server.crt", 0o644, _OWNER),
        SecretRef(f"{member_name}-server.key", f"{pki}/server.key", 0o600, _OWNER),
        SecretRef(f"{member_name}-peer.crt", f"{pki}/peer.crt", 0o644, _OWNER),
        SecretRef(f"{member_name}-peer.key", f"{pki}/peer.key", 0o600, _OWNER),
    )


def _files(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> tuple[HostFile, ...]:
    env = f"/etc/etcd/{role}/etcdctl.env"
    endpoints = client_urls(cluster, role, plan)
    return (
        # 0600 is CIS 1.1.7.
        HostFile(f"/etc/systemd/system/{unit_name(role)}", unit(cluster, role, member_name, plan), 0o600),
        programs.collector(),
        HostFile(env, render("etcdctl.env.j2", endpoints=endpoints, pki=pki_dir(role)), 0o600),
        HostFile(f"/usr/local/sbin/etcdctl-{role}", render("etcdctl.sh.j2", role=role, env=env), 0o700),
    )


def program_download(archive: Artefact, *programs: str) -> Download:
    """Programs out of etcd's archive."""
    folder = archive.source.rsplit("/", 1)[1].removesuffix(".tar.gz")
    return Download(archive, members=tuple((f"{folder}/{name}", f"/usr/local/bin/{name}") for name in programs))


def _once(things: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(things))
