"""Ranges of the cluster, the pods' overlay, and the sizes of the neighbour table, as an operator writes them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from cluster.model import Model
from cluster.quantities import SMALLEST_MTU, Address, Domain, Network, Port

NODE_PORTS = range(30000, 32768)
"""Of Services, on every worker, TCP and UDP: kube-apiserver's default (`--service-node-port-range`), which its flags leave."""


class FlannelBackend(StrEnum):
    """How pod packets travel between nodes."""

    VXLAN = "vxlan"
    HOST_GW = "host-gw"


class Flannel(Model):
    """The pods' overlay."""

    backend: FlannelBackend = Field(default=FlannelBackend.VXLAN, strict=False)
    """vxlan, or host-gw where all nodes share one layer-2 network."""
    direct_routing: bool = True
    """vxlan only: native routes between hosts on one layer-2 network, VXLAN between networks."""
    vni: int = Field(default=1, ge=1, le=16_777_215)
    """VXLAN network identifier; no unit."""
    port: Port = 8472
    """UDP port of VXLAN on every node."""
    mtu: int | None = Field(default=None, ge=SMALLEST_MTU, le=65535)
    """Bytes, with vxlan only. Default: derived from the whole chain of links."""
    network: Network | None = None
    """Default: network.pods. Accepted only to be compared with it."""
    allow_encapsulation: bool = False
    """Accept direct_routing although no two hosts share a layer-2 network."""


class NodePorts(Model):
    """Who reaches the ports that Services of type NodePort and LoadBalancer have on every worker: 30000 to 32767."""

    cluster: bool = True
    """Whether workers do, and pods with them. API servers never do: they reach pods in tunnels."""
    outside: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges outside of the cluster that do too, such as that of a load balancer of your own. Default: nobody."""
    allow_any_client: bool = False
    """Accept that outside holds 0.0.0.0/0, or another range that no one owner has."""


class ClusterNetwork(Model):
    """Ranges of the cluster; none may share an address with another."""

    pods: Network
    """Cut into one range of node_prefix for each node: a /12 has room for 4096 nodes of /24."""
    services: Network
    """Virtual addresses of services, on no wire; at most a /12."""
    nodes: Network
    """Hosts on the cloud side: API servers, etcd members, load balancer, cloud workers."""
    node_prefix: int = Field(default=24, ge=16, le=30)
    """Prefix length of the range of pods that each node gets."""
    max_pods: int = Field(default=110, ge=1, le=1000)
    """Pods on a node; 110 is the size that Kubernetes is tested at."""
    dns_ip: Address | None = None
    """Default: the tenth address of services."""
    allow_public_ranges: bool = False
    """Accept ranges of the internet for pods, services and nodes: of whoever owns them."""
    domain: Domain = "cluster.local"
    """DNS domain of services and pods."""
    link_mtu: int = Field(default=1500, ge=1280, le=9216)
    """Bytes, on the cloud side."""
    flannel: Flannel = Flannel()
    """The pods' overlay."""
    node_ports: NodePorts = NodePorts()
    """Who reaches ports of Services on workers. Default: the cluster itself, and nobody else."""


class Neighbours(Model):
    """Neighbour (ARP) table thresholds; unset ones are computed from the cluster's size."""

    gc_thresh1: int | None = Field(default=None, ge=0)
    """Entries below which none is removed; 0 on AWS, where addresses are soon used again."""
    gc_thresh2: int | None = Field(default=None, ge=1)
    """Entries above which stale ones go after 5 s."""
    gc_thresh3: int | None = Field(default=None, ge=1)
    """Entries above which new ones are refused."""
