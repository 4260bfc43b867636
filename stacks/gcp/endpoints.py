"""Access to Google's services, including Secret Manager and Cloud Storage, without the internet and NAT."""

from __future__ import annotations

from ipaddress import IPv4Address

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.subnets import region_subnets
from stacks.gcp.dns import TTL_S, private_zone
from stacks.gcp.network import Network
from stacks.gcp.tags import endpoint_name, generated

_DOMAIN = "googleapis.com."


def address(cluster: Cluster) -> IPv4Address:
    """Return the endpoint's address: part of the plan, outside all subnetworks."""
    return region_subnets(cluster.spec).endpoints[1]


class Endpoints(pulumi.ComponentResource):
    """One address for all of Google's APIs, and their names in a zone that the network resolves.

    Subnetworks also have Private Google Access, for names outside of googleapis.com, such as pkg.dev, to which
    registry.k8s.io redirects pulls from inside Google.
    """

    def __init__(self, cluster: Cluster, network: Network, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Endpoints", f"{cluster.name}-endpoints", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        reserved = gcp.compute.GlobalAddress(
            generated(cluster, "google-apis"),
            address_type="INTERNAL",
            purpose="PRIVATE_SERVICE_CONNECT",
            network=network.network.id,
            address=str(address(cluster)),
            opts=own,
        )
        rule = gcp.compute.GlobalForwardingRule(
            generated(cluster, "google-apis"),
            name=endpoint_name(cluster),
            target="all-apis",
            network=network.network.id,
            ip_address=reserved.id,
            load_balancing_scheme="",
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.made: list[pulumi.Resource] = [rule, *_names(cluster, network, own)]
        """What hosts need before they fetch anything."""
        self.register_outputs({})


def _names(cluster: Cluster, network: Network, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Create one record for all services; nothing is at googleapis.com itself."""
    zone = private_zone(cluster, "google-apis", _DOMAIN, network, opts)
    record = gcp.dns.RecordSet(
        generated(cluster, "google-apis"),
        managed_zone=zone.name,
        name=f"*.{_DOMAIN}",
        type="A",
        ttl=TTL_S,
        rrdatas=[str(address(cluster))],
        opts=opts,
    )
    return [record]
