"""Configuration of a host with an etcd member: unit, certificates by reference, programs.

The same function and the same template serve every etcd of a cluster.

Losing a host does not lose the member: the data folder is on a separate volume, and a member that starts with its data takes its
identity from there (--initial-cluster-* is then ignored). So a new host with the old volume, name and address continues where
the old one stopped.

Losing the volume loses the member. With an empty folder it refuses to start, with "has already been bootstrapped": its peers
remember it, and it must not vote without what it forgot. To recover, run `etcdctl member remove` and `member add`, and start it
with --initial-cluster-state=existing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.audit import programs
from cluster.files import Disk, Download, HostConfig, HostFile, Refresh, SecretRef
from cluster.spec import Cluster, RoleName
from etcd import agent, backups, relay
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
    """Return the full configuration of this member's host for this etcd; see `merge` for a host with two.

    Raises ValueError if the etcd has no such member, and KeyError if `source` has no checksum for etcd's archive, or for restic
    if the etcd has backups.
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
    host = member(cluster, role, member_name, plan).host
    return merge(
        agent.host_config(cluster, host, plan),
        own,
        backups.host_config(cluster, role, member_name, plan, source),
        relay.host_config(cluster, host, plan),
    )


def host_configs(
    cluster: Cluster,
    plan: AddressPlan,
    source: ArtefactSource,
    disks: Callable[[RoleName], Disk] | None = None,
) -> dict[str, HostConfig]:
    """Return host name -> the configuration for all members on that host. Hosts of main come first.

    disks: returns the data disk of an etcd's members, see `data_disk`; None if something else mounts it.
    """
    by_host: dict[str, list[HostConfig]] = {}
    for role in ROLES:
        own = (disks(role),) if disks else ()
        for local in members(cluster, role, plan):
            config = host_config(cluster, role, local.name, plan, source)
            by_host.setdefault(local.host, []).append(replace(config, disks=own))
    return {host: merge(*configs) for host, configs in by_host.items()}


def merge(*configs: HostConfig) -> HostConfig:
    """Merge several configurations into one for a single host. Common parts appear once.

    Raises ValueError if two of them have different contents for the same path.
    """
    files = _once(file for config in configs for file in config.files)
    paths = [file.path for file in files]
    for path in paths:
        if paths.count(path) > 1:
            raise ValueError(f"{path} has two different contents; give each etcd on the host its own path")
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
    """Merge refreshes. The result reports to the first etcd of the host."""
    if not several:
        return None
    return replace(
        several[0],
        consumers=_once(consumer for config in several for consumer in config.consumers),
        programs=_once(program for config in several for program in config.programs),
    )


def data_disk(cluster: Cluster, role: RoleName, devices: tuple[str, ...], size: int = 0) -> Disk:
    """Return the data disk of this etcd's members. devices, size: as the cloud names and creates it."""
    return Disk(data_dir(cluster, role), f"etcd-{role}", devices, size=size)


def unit(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> str:
    """Return the text of the member's systemd unit."""
    return render(
        "etcd.service.j2",
        cluster=cluster.name,
        role=role,
        member=member(cluster, role, member_name, plan).name,
        data_dir=data_dir(cluster, role),
        flags=flags(cluster, role, member_name, plan),
    )


def secrets(role: RoleName, member_name: str) -> tuple[SecretRef, ...]:
    """Return references to the member's certificates and keys in the cluster's secret store.

    kube-apiserver has one client certificate for all its etcds, signed by main's CA. So other etcds accept main's CA and their own
    from clients, and only their own from peers. Main does not accept certificates of their CA.
    """
    pki = pki_dir(role)
    client_cas: tuple[RoleName, ...] = ("main",) if role == "main" else ("main", role)
    return (
        SecretRef(f"etcd-{role}-ca.crt", f"{pki}/ca.crt", 0o644, _OWNER),
        *(SecretRef(f"etcd-{ca}-ca.crt", f"{pki}/client-ca.crt", 0o644, _OWNER) for ca in client_cas),
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
    """Return a download of programs from etcd's archive."""
    folder = archive.source.rsplit("/", 1)[1].removesuffix(".tar.gz")
    return Download(archive, members=tuple((f"{folder}/{name}", f"/usr/local/bin/{name}") for name in programs))


def _once(things: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(things))
