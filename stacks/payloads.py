"""The payload of every kind of host in the region, and what each host may read from the store, for all providers.

A reader is an identity: all API servers share one, each etcd host has its own, and all workers in the region share one.
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
from stacks.cloud_store import API_SERVERS, WORKERS, bundle_name
from stacks.pki import Pki

DIGEST_CHARACTERS = 16
"""Of a SHA-256 in hex, as in `components.userdata.refresh`: enough to distinguish values. Keys are too long to be guessed from it."""

Values = dict[str, dict[str, pulumi.Input[str]]]
"""Reader -> name -> value."""


def reader(plan: AddressPlan, host: str) -> str:
    """Return the reader as which a host of the plan reads the store."""
    return API_SERVERS if host in {server.name for server in plan.api_servers} else host


def payloads(
    cluster: Cluster,
    plan: AddressPlan,
    source: ArtefactSource,
    disks: Callable[[RoleName], Disk] | None = None,
    machine: str = "",
) -> dict[str, Payload]:
    """Return reader -> payload, for API servers and etcd hosts.

    machine: the cloud's program of `stacks.machines`, for clusters with workers in the region.
    disks: the data disk of an etcd's members (`etcd.render.data_disk`); None if something else mounts it.
    Raises KeyError if `source` has no checksum for a program.
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
    """Return pool in the region -> payload of its workers, including the operator's settings in ``group_vars``.

    Raises KeyError as `payloads` does, and SpecError if a file of ``group_vars`` is wrong.
    """
    pools = cluster.spec.region_pools
    if not pools:
        return {}
    given = group_vars.operator_variables(cluster)
    return {name: Payload.of(workers.host_config(cluster, name, plan, source, given), source) for name in pools}


def secrets(
    cluster: Cluster, plan: AddressPlan, pki: Pki, backups: Mapping[str, Mapping[str, pulumi.Input[str]]]
) -> Values:
    """Return the keys and certificates that each reader may read, by name, without the join token.

    backups: the result of `stacks.backups.secrets`.
    """
    own: Values = {API_SERVERS: {**pki.for_api_server()}}
    for role in ROLES:
        for member in members(cluster, role, plan):
            values = pki.for_member(member.name) | pki.for_etcd_host(member.host)
            own.setdefault(member.host, {}).update(values)
    for host, values in backups.items():
        own[host].update(values)
    if cluster.spec.region_pools:
        own[WORKERS] = {**pki.for_worker()}
    return own


def digests(cluster: Cluster, plan: AddressPlan, pki: Pki) -> pulumi.Output[str]:
    """Return JSON, reader -> name -> digest as menagerie-refresh reports it, to check whether a host has the current value."""

    def digested(values: Mapping[str, Mapping[str, str]]) -> str:
        by_reader = {
            name: {
                secret: hashlib.sha256(value.encode()).hexdigest()[:DIGEST_CHARACTERS] for secret, value in own.items()
            }
            for name, own in values.items()
        }
        return json.dumps(by_reader, sort_keys=True)

    gathered = {name: pulumi.Output.all(**values) for name, values in secrets(cluster, plan, pki, {}).items()}
    return pulumi.Output.unsecret(pulumi.Output.all(**gathered).apply(digested))


def readable(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    by_reader: Mapping[str, Payload],
    backups: Mapping[str, Mapping[str, pulumi.Input[str]]],
) -> Values:
    """Return what each reader with a payload may read from a store with one entry per secret, such as the lab's.

    backups: as in `secrets`.
    """
    own = secrets(cluster, plan, pki, backups)
    return {
        name: {payload.name: payload.packed(), **own[name], **_digest(name, payload)}
        for name, payload in by_reader.items()
    }


def _digest(name: str, payload: Payload) -> dict[str, str]:
    """Return the digest of a reader's payload, for hosts that take a new payload while running."""
    return {} if name == API_SERVERS else {PAYLOAD_DIGEST: payload.sha256}


def of_etcds(by_reader: Mapping[str, Payload]) -> str:
    """Return etcd host -> the text of its payload, as packed JSON: operators push it to running hosts."""
    return packed(json.dumps({name: payload.text for name, payload in by_reader.items() if name != API_SERVERS}))


def stored(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    by_reader: Mapping[str, Payload],
    backups: Mapping[str, Mapping[str, pulumi.Input[str]]],
    by_pool: Mapping[str, Payload] | None = None,
    storage_classes: pulumi.Input[str] | None = None,
) -> Values:
    """Return what a cloud's store holds for each reader, readable by it alone: payloads by name, and one bundle.

    backups: as in `secrets`. by_pool: payloads of pools in the region. Workers also read, and API servers write,
    `cluster.files.JOIN_TOKEN`, which no stack manages.
    storage_classes: the text of `components.control_plane.csi.storage_classes`; ValueError if there is a
    `cluster.storage.controllers_pool` and no such text.
    """
    values_of: Values = {name: {payload.name: payload.packed()} for name, payload in by_reader.items()}
    if by_pool:
        values_of[WORKERS] = {payload.name: payload.packed() for payload in by_pool.values()}
    secrets_of = secrets(cluster, plan, pki, backups)
    if controllers_pool(cluster.spec):
        if storage_classes is None:
            raise ValueError(f"{cluster.name} has volume drivers, but its stack provides no storage classes for them")
        secrets_of[API_SERVERS][STORAGE_CLASSES] = storage_classes
    for name, own in secrets_of.items():
        if name in values_of:
            digest = _digest(name, by_reader[name]) if name in by_reader else {}
            values_of[name][bundle_name(name)] = _bundle({**own, **digest})
    return values_of


def _bundle(values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
    return pulumi.Output.secret(
        pulumi.Output.all(**values).apply(lambda values_: json.dumps(values_, sort_keys=True, separators=(",", ":")))
    )
