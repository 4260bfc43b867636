"""The payload of every kind of host in the region, and what each may read of the store, whatever the provider.

A reader is an identity: all API servers have one, each etcd host its own, and all workers in the region one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.files import PAYLOAD_DIGEST, STORAGE_CLASSES, Disk, HostConfig
from cluster.spec import Cluster, RoleName
from cluster.storage import controllers_pool
from components import control_plane, workers
from components.userdata import Payload
from components.userdata.payload import packed
from components.workers import group_vars
from etcd.members import members
from etcd.render import host_configs
from network.addresses import ROLES, AddressPlan
from stacks import machines
from stacks.cloud_store import bundle_name
from stacks.pki import Pki

API_SERVERS, WORKERS = "api-servers", "workers"
"""Readers; an etcd host's is its name."""

DIGEST_CHARACTERS = 16
"""Of a SHA-256 in hex, as in `components.userdata.refresh`: enough to tell values apart, and keys are too long to be guessed by it."""

Values = dict[str, dict[str, pulumi.Input[str]]]
"""Reader -> name -> value."""


def reader(plan: AddressPlan, host: str) -> str:
    """As whom a host of the plan reads the store."""
    return API_SERVERS if host in {server.name for server in plan.api_servers} else host


def payloads(
    cluster: Cluster,
    plan: AddressPlan,
    source: ArtefactSource,
    disks: Callable[[RoleName], Disk] | None = None,
    machine: str = "",
) -> dict[str, Payload]:
    """Reader -> what its hosts are to be, of API servers and etcd hosts.

    machine: the cloud's program of `stacks.machines`, for clusters with workers in the region.
    disks: the data disk of an etcd's members (`etcd.render.data_disk`); None where something else mounts it.
    Raises KeyError where `source` has no checksum for a program.
    """
    servers = control_plane.host_config(cluster, plan, source)
    if cluster.spec.cloud_workers and machine:
        servers = replace(servers, files=(*servers.files, machines.placed(machine)))
    configs = {API_SERVERS: servers}
    configs |= host_configs(cluster, plan, source, disks)
    return {name: Payload.of(_reading_as(name, config), source) for name, config in configs.items()}


def _reading_as(name: str, config: HostConfig) -> HostConfig:
    return replace(config, refresh=replace(config.refresh, reader=name)) if config.refresh else config


def worker_payloads(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[str, Payload]:
    """Pool in the region -> what its workers are to be, with what the operator gives them in ``group_vars``.

    Raises KeyError as `payloads` does, and SpecError where a file of ``group_vars`` is wrong.
    """
    pools = [name for name, pool in cluster.spec.pools.items() if pool.site is None]
    if not pools:
        return {}
    given = group_vars.given(cluster)
    return {name: Payload.of(workers.host_config(cluster, name, plan, source, given), source) for name in pools}


def secrets(
    cluster: Cluster, plan: AddressPlan, pki: Pki, backups: Mapping[str, Mapping[str, pulumi.Input[str]]]
) -> Values:
    """The keys and certificates that a reader may have, by name, but for the join token.

    backups: what `stacks.backups.secrets` says of hosts.
    """
    own: Values = {API_SERVERS: {**pki.for_api_server()}}
    for role in ROLES:
        for member in members(cluster, role, plan):
            own.setdefault(member.host, {}).update(pki.for_member(member.name))
    for host, values in backups.items():
        own[host].update(values)
    if any(pool.site is None for pool in cluster.spec.pools.values()):
        own[WORKERS] = {**pki.for_worker()}
    return own


def digests(cluster: Cluster, plan: AddressPlan, pki: Pki) -> pulumi.Output[str]:
    """JSON, reader -> name -> what menagerie-refresh tells of a value that a host has: so one sees whether it is this one."""

    def told(values: Mapping[str, Mapping[str, str]]) -> str:
        found = {
            name: {each: hashlib.sha256(value.encode()).hexdigest()[:DIGEST_CHARACTERS] for each, value in own.items()}
            for name, own in values.items()
        }
        return json.dumps(found, sort_keys=True)

    gathered = {name: pulumi.Output.all(**values) for name, values in secrets(cluster, plan, pki, {}).items()}
    return pulumi.Output.unsecret(pulumi.Output.all(**gathered).apply(told))


def readable(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    by_reader: Mapping[str, Payload],
    backups: Mapping[str, Mapping[str, pulumi.Input[str]]],
) -> Values:
    """What each reader with a payload may read where the store holds every secret by itself, as the lab's does.

    backups: as in `secrets`.
    """
    own = secrets(cluster, plan, pki, backups)
    return {
        name: {payload.name: payload.packed(), **own[name], **_digest(name, payload)}
        for name, payload in by_reader.items()
    }


def _digest(name: str, payload: Payload) -> dict[str, str]:
    """What a reader's hosts are to be, for hosts that take another payload while they run."""
    return {} if name == API_SERVERS else {PAYLOAD_DIGEST: payload.sha256}


def of_etcds(by_reader: Mapping[str, Payload]) -> str:
    """Host of an etcd -> the text of its payload, as packed JSON: for operators, who hand it to the hosts that run."""
    return packed(json.dumps({name: each.text for name, each in by_reader.items() if name != API_SERVERS}))


def stored(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    by_reader: Mapping[str, Payload],
    backups: Mapping[str, Mapping[str, pulumi.Input[str]]],
    by_pool: Mapping[str, Payload] | None = None,
    storage_classes: pulumi.Input[str] | None = None,
) -> Values:
    """What a cloud's store holds for each reader, and it alone may read: payloads by their names, and one bundle.

    backups: as in `secrets`. by_pool: payloads of pools in the region. Workers also read, and API servers write, `cluster.files.JOIN_TOKEN`,
    which is in no stack's hands.
    storage_classes: the text of `components.control_plane.csi.storage_classes`; ValueError where there is a
    `cluster.storage.controllers_pool` and no such text.
    """
    found: Values = {name: {payload.name: payload.packed()} for name, payload in by_reader.items()}
    if by_pool:
        found[WORKERS] = {payload.name: payload.packed() for payload in by_pool.values()}
    of_readers = secrets(cluster, plan, pki, backups)
    if controllers_pool(cluster.spec):
        if storage_classes is None:
            raise ValueError(f"{cluster.name} has drivers of volumes, and its stack gives no classes for them")
        of_readers[API_SERVERS][STORAGE_CLASSES] = storage_classes
    for name, values in of_readers.items():
        if name in found:
            digest = _digest(name, by_reader[name]) if name in by_reader else {}
            found[name][bundle_name(name)] = _bundle({**values, **digest})
    return found


def _bundle(values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
    return pulumi.Output.secret(
        pulumi.Output.all(**values).apply(lambda known: json.dumps(known, sort_keys=True, separators=(",", ":")))
    )
