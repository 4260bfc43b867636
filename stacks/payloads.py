"""The payload of every host on the cloud side, whatever the provider."""

from __future__ import annotations

import control_plane
from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from etcd.render import host_configs
from network.addresses import AddressPlan
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
