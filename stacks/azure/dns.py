"""The private DNS zone with the API's name."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from network.addresses import AddressPlan
from stacks.azure.network import Network
from stacks.azure.tags import tags

_TTL_S = 300


class Dns(pulumi.ComponentResource):
    """`<cluster>.internal`, resolved only inside the network, with `api` -> the load balancer."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        group: pulumi.Input[str],
        network: Network,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Dns", "dns", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        zone = linked_zone(cluster, "dns", str(plan.zone), group, network, own)
        azure.privatedns.PrivateRecordSet(
            "api",
            resource_group_name=group,
            private_zone_name=zone.name,
            record_type="A",
            relative_record_set_name=plan.endpoint.removesuffix(f".{plan.zone}"),
            ttl=_TTL_S,
            a_records=[azure.privatedns.ARecordArgs(ipv4_address=str(address)) for address in plan.balancers],
            opts=own,
        )
        self.register_outputs({})


def linked_zone(
    cluster: Cluster,
    name: str,
    domain: str,
    group: pulumi.Input[str],
    network: Network,
    opts: pulumi.ResourceOptions,
) -> azure.privatedns.PrivateZone:
    """Create a private zone that the cluster's network resolves. name: in the program."""
    zone = azure.privatedns.PrivateZone(
        name,
        resource_group_name=group,
        private_zone_name=domain,
        location="global",
        tags=tags(cluster, "dns"),
        opts=opts,
    )
    azure.privatedns.VirtualNetworkLink(
        name,
        resource_group_name=group,
        private_zone_name=zone.name,
        location="global",
        virtual_network=azure.privatedns.SubResourceArgs(id=network.network.id),
        registration_enabled=False,
        tags=tags(cluster, "dns"),
        opts=opts,
    )
    return zone
