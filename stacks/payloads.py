"""The payload of every host on the cloud side, and what each may read of the store, whatever the provider."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

import control_plane
from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from etcd.members import members
from etcd.render import host_configs
from network.addresses import ROLES, AddressPlan
from stacks.pki import Pki
from userdata import Payload


def payloads(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[str, Payload]:
    """Host name -> what it is to be; API servers share one payload.

    Raises KeyError where `source` has no checksum for a program.
    """
    api_server = Payload.of(control_plane.host_config(cluster, plan, source), source)
    members = host_configs(cluster, plan, source)
    return dict.fromkeys((host.name for host in plan.api_servers), api_server) | {
        name: Payload.of(config, source) for name, config in members.items()
    }


def readable(
    cluster: Cluster, plan: AddressPlan, pki: Pki, by_host: Mapping[str, Payload]
) -> dict[str, dict[str, pulumi.Input[str]]]:
    """Host name -> what that host may read: its own payload, keys and certificates, by name."""
    own: dict[str, dict[str, pulumi.Input[str]]] = {
        host.name: {by_host[host.name].name: by_host[host.name].packed()} for host in plan.hosts()
    }
    for host in plan.api_servers:
        own[host.name].update(pki.for_api_server())
    for role in ROLES:
        for member in members(cluster, role, plan):
            own[member.host].update(pki.for_member(member.name))
    return own
