"""The cluster's network: a subnetwork for each role, across all zones, and their only route to the internet."""

from __future__ import annotations

from ipaddress import IPv4Network

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.subnets import region_subnets
from stacks.gcp.tags import named

API_SERVERS, ETCD, WORKERS = "api-servers", "etcd", "workers"
"""Names of subnetworks. The plan's range of endpoints has none: addresses for Google's services must be outside of all
subnetworks ("About accessing Google APIs through endpoints"). Nor has the gateway's range: it has no address inside."""

MTUS = range(1300, 8897)
""""Maximum transmission unit", Virtual Private Cloud."""
_FEWEST_PORTS, _MOST_PORTS = 64, 4096
"""Of a host, at NAT: limits simultaneous connections to one destination."""


class Network(pulumi.ComponentResource):
    """A network over `network.nodes`. Only NAT has public addresses.

    Raises ValueError for a `link_mtu` that Google's networks do not support.
    """

    subnets: dict[str, gcp.compute.Subnetwork]

    def __init__(self, cluster: Cluster, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Network", f"{cluster.name}-network", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        mtu = cluster.spec.network.link_mtu
        if mtu not in MTUS:
            raise ValueError(f"network.link_mtu {mtu}: networks of Google Cloud support {MTUS[0]} to {MTUS[-1]}")
        self.network = gcp.compute.Network(
            named(cluster, "network"),
            name=named(cluster, "network"),
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=mtu,
            opts=self._own,
        )
        self.subnets = {name: self._subnet(name, range_) for name, range_ in self._ranges().items()}
        self._nat()
        self.register_outputs({})

    def _ranges(self) -> dict[str, IPv4Network]:
        ranges = region_subnets(self._cluster.spec)
        needed = {API_SERVERS: ranges.api_servers, ETCD: ranges.etcd}
        return needed | ({WORKERS: ranges.workers} if self._cluster.spec.cloud_workers else {})

    def _subnet(self, name: str, range_: IPv4Network) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            named(self._cluster, name),
            name=named(self._cluster, name),
            network=self.network.id,
            ip_cidr_range=str(range_),
            private_ip_google_access=True,
            log_config=gcp.compute.SubnetworkLogConfigArgs(
                aggregation_interval="INTERVAL_10_MIN", flow_sampling=0.5, metadata="INCLUDE_ALL_METADATA"
            ),
            # Two subnetworks can't have its range at the same time.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )

    def _nat(self) -> None:
        name = named(self._cluster, "nat")
        router = gcp.compute.Router(name, name=name, network=self.network.id, opts=self._own)
        gcp.compute.RouterNat(
            name,
            name=name,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES",
            # With a fixed number of ports, which is the default, a host always has 64.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            min_ports_per_vm=_FEWEST_PORTS,
            max_ports_per_vm=_MOST_PORTS,
            log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=self._own,
        )
