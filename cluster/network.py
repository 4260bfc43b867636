"""The model of a cluster's network: address ranges, the pods' overlay, and sizes of the neighbour table."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from cluster.model import Model
from cluster.quantities import SMALLEST_MTU, Address, Domain, Network, Port

NODE_PORTS = range(30000, 32768)
"""Ports of Services on every worker, TCP and UDP. kube-apiserver's default (`--service-node-port-range`), which we keep."""


class FlannelBackend(StrEnum):
    """How pod packets travel between nodes."""

    VXLAN = "vxlan"
    HOST_GW = "host-gw"


class Flannel(Model):
    """The pods' overlay."""

    backend: FlannelBackend = Field(default=FlannelBackend.VXLAN, strict=False)
    """vxlan, or host-gw if all nodes share one layer-2 network."""
    direct_routing: bool = True
    """Only with vxlan: native routes between hosts on one layer-2 network, VXLAN between networks."""
    vni: int = Field(default=1, ge=1, le=16_777_215)
    """VXLAN network identifier."""
    port: Port = 8472
    """UDP port of VXLAN on every node."""
    mtu: int | None = Field(default=None, ge=SMALLEST_MTU, le=65535)
    """MTU of pods in bytes, only with vxlan. Default: the largest that fits all links."""
    network: Network | None = None
    """Must be equal to network.pods, if given. Default: network.pods."""
    allow_encapsulation: bool = False
    """Accept direct_routing even if no two hosts share a layer-2 network."""


class NodePorts(Model):
    """Who may reach the ports 30000 to 32767 of Services of type NodePort and LoadBalancer on workers."""

    cluster: bool = True
    """Whether workers and their pods may. API servers never do: they reach pods through tunnels."""
    outside: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges outside the cluster that may too, such as that of your own load balancer. Default: none."""
    allow_any_client: bool = False
    """Accept 0.0.0.0/0, or another range too large for a single owner, in outside."""


class ClusterNetwork(Model):
    """Address ranges of the cluster, which must not overlap."""

    pods: Network
    """Range of pods, of which each node gets one of size node_prefix: a /12 has room for 4096 nodes with a /24."""
    services: Network
    """Range of virtual addresses of Services, which exist on no wire; at most a /12."""
    nodes: Network
    """Range of hosts in the region: API servers, etcd members, load balancer, workers."""
    node_prefix: int = Field(default=24, ge=16, le=30)
    """Prefix length of each node's range of pods."""
    max_pods: int = Field(default=110, ge=1, le=1000)
    """Most pods on a node; Kubernetes is tested with 110."""
    dns_ip: Address | None = None
    """Address of the DNS Service. Default: the tenth address of services."""
    allow_public_ranges: bool = False
    """Accept public ranges for pods, services and nodes, if you own them."""
    domain: Domain = "cluster.local"
    """DNS domain of Services and pods."""
    link_mtu: int = Field(default=1500, ge=1280, le=9216)
    """MTU of links in the region, in bytes."""
    flannel: Flannel = Flannel()
    """The pods' overlay."""
    node_ports: NodePorts = NodePorts()
    """Who may reach ports of Services on workers. Default: only the cluster itself."""


class Neighbours(Model):
    """Neighbour (ARP) table thresholds; unset ones are computed from the cluster's size."""

    gc_thresh1: int | None = Field(default=None, ge=0)
    """Entries below which none are removed; 0 on AWS, which reuses addresses quickly."""
    gc_thresh2: int | None = Field(default=None, ge=1)
    """Entries above which stale ones are removed after 5 s."""
    gc_thresh3: int | None = Field(default=None, ge=1)
    """Entries above which new ones are refused."""
