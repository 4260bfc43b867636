"""The private DNS zone with the API's name."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from network.addresses import AddressPlan
from stacks.gcp.network import Network
from stacks.gcp.tags import generated, labels

TTL_S = 300


class Dns(pulumi.ComponentResource):
    """`<cluster>.internal`, resolved only inside the network, with `api` -> the load balancer."""

    def __init__(self, cluster: Cluster, plan: AddressPlan, network: Network, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Dns", f"{cluster.name}-dns", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        zone = private_zone(cluster, "dns", f"{plan.zone}.", network, own)
        gcp.dns.RecordSet(
            generated(cluster, "api"),
            managed_zone=zone.name,
            name=f"{plan.endpoint}.",
            type="A",
            ttl=TTL_S,
            rrdatas=[str(address) for address in plan.balancers],
            opts=own,
        )
        self.register_outputs({})


def private_zone(
    cluster: Cluster, role: str, domain: str, network: Network, opts: pulumi.ResourceOptions
) -> gcp.dns.ManagedZone:
    """Create a zone that only the cluster's network resolves."""
    visible_to = gcp.dns.ManagedZonePrivateVisibilityConfigNetworkArgs(network_url=network.network.id)
    return gcp.dns.ManagedZone(
        generated(cluster, role),
        dns_name=domain,
        description=f"{cluster.name}: {domain}",
        visibility="private",
        private_visibility_config=gcp.dns.ManagedZonePrivateVisibilityConfigArgs(networks=[visible_to]),
        labels=labels(role),
        opts=opts,
    )
