"""The spec of a lab, and the names and addresses that follow from it. Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

CLOUD = "cloud"
WORKERS = "workers"
STORE = "store"
SERVICES = "services"

# The lab's own ranges; a cluster's ranges come from its spec.
SERVICES_RANGE = IPv4Network("10.79.1.0/24")
STORE_RANGE = IPv4Network("10.79.2.0/24")
UPLINK_RANGE = IPv4Network("10.79.3.0/30")

SERVICES_ADDRESS = SERVICES_RANGE[10]
STORE_ADDRESS = IPv4Address("169.254.169.254")
"""The address of a cloud's metadata service, which also identifies clients by source address and must refuse pods."""
STORE_OWN_ADDRESS = STORE_RANGE[2]
"""The source address from which the store answers hosts on its network."""
MIRROR_PORT = 80
REGISTRY_PORT = 5000
STATUS_PORT = 8404
BUCKETS_PORT = 7070

MIRROR_URL = f"http://{SERVICES_ADDRESS}"
REGISTRY = f"{SERVICES_ADDRESS}:{REGISTRY_PORT}"
BUCKETS_URL = f"http://{SERVICES_ADDRESS}:{BUCKETS_PORT}"
BUCKETS = ("backups", "records", "audit-logs")
STORE_URL = f"http://{STORE_ADDRESS}"


LISTS = ("endpoint_ports", "between_workers", "racks_to_cloud", "workers_to_cloud")
"""Fields of `LabSpec` that JSON keeps as lists."""


@dataclass(frozen=True)
class LabSpec:
    """The networks of a lab and the content of its services.

    nodes: range of the cloud side. racks: name -> range, one layer-2 network each.
    endpoint: address of the load balancer, inside nodes. endpoint_ports: its ports that workers may reach.
    workers: the upper half of nodes, for workers in the region; "" when the lab has none.
    between_workers: connections allowed between workers in the region and racks, such as "udp dport 8472".
    racks_to_cloud, workers_to_cloud: connections to hosts in the cloud, such as "ip daddr { 10.77.0.11 } tcp dport 2396".
    image: root file system of the hosts. mirror: folder that is served as <host>/<path>.
    crane: the program that serves the image registry. images: folder with the blobs of its images.
    rack_mtu: bytes. versitygw: the program that serves buckets.
    """

    cluster: str
    nodes: str
    racks: Mapping[str, str]
    endpoint: str
    endpoint_ports: tuple[int, ...]
    image: str
    mirror: str
    crane: str
    images: str
    rack_mtu: int = 1500
    workers: str = ""
    between_workers: tuple[str, ...] = ()
    racks_to_cloud: tuple[str, ...] = ()
    workers_to_cloud: tuple[str, ...] = ()
    versitygw: str = ""

    def ranges(self) -> dict[str, IPv4Network]:
        """Return every range that the lab occupies, by a readable name."""
        racks = {f"rack {name}": IPv4Network(text) for name, text in self.racks.items()}
        own = {"lab services": SERVICES_RANGE, "lab secret store": STORE_RANGE, "lab uplink": UPLINK_RANGE}
        return {"nodes": IPv4Network(self.nodes)} | racks | own


@dataclass(frozen=True)
class Segment:
    """A layer-2 network of the lab: a bridge in the router.

    gateway: the router's address on it, None when the router has none. mtu: bytes.
    """

    name: str
    network: IPv4Network
    gateway: IPv4Address | None
    mtu: int = 1500

    @property
    def bridge(self) -> str:
        return interface("br-", self.name)


def segments(spec: LabSpec) -> dict[str, Segment]:
    """Return all layer-2 networks by name: cloud, workers, store, services and ``rack/<name>``."""
    nodes = IPv4Network(spec.nodes)
    networks = [
        Segment(CLOUD, next(nodes.subnets()) if spec.workers else nodes, nodes[1]),
        Segment(STORE, STORE_RANGE, None),
        Segment(SERVICES, SERVICES_RANGE, SERVICES_RANGE[1]),
    ]
    if spec.workers:
        workers = IPv4Network(spec.workers)
        networks.append(Segment(WORKERS, workers, workers[1]))
    for name, text in spec.racks.items():
        network = IPv4Network(text)
        networks.append(Segment(rack(name), network, network[1], spec.rack_mtu))
    return {segment.name: segment for segment in networks}


def rack(name: str) -> str:
    """Return the segment name of a rack."""
    return f"rack/{name}"


def store_address(nodes: str, address: str) -> IPv4Address:
    """Return a cloud host's address on the store's network: the same host number as on `nodes`.

    Raises ValueError when the host number does not fit.
    """
    number = int(IPv4Address(address)) - int(IPv4Network(nodes).network_address)
    if not 0 < number < STORE_RANGE.num_addresses - 1 or STORE_RANGE[number] == STORE_OWN_ADDRESS:
        raise ValueError(
            f"{address} has no counterpart on the lab's store network; use an address from .3 to .254 of {nodes}"
        )
    return STORE_RANGE[number]


def interface(prefix: str, name: str) -> str:
    """Return a Linux interface name (at most 15 bytes) that is always the same for the same `name`."""
    short = name.removeprefix("rack/")
    if len(prefix) + len(short) <= 15 and short.replace("-", "").isalnum():
        return prefix + short
    return prefix + hashlib.sha256(name.encode()).hexdigest()[: 15 - len(prefix)]


def port(host: str, segment: str) -> str:
    """Return the name of the router's end of a host's cable on a segment."""
    return "p-" + hashlib.sha256(f"{host} {segment}".encode()).hexdigest()[:12]


def mac(host: str, segment: str) -> str:
    """Return a locally administered MAC address that is always the same for the same host and segment."""
    digits = hashlib.sha256(f"mac {host} {segment}".encode()).hexdigest()[:10]
    return "02:" + ":".join(digits[i : i + 2] for i in range(0, 10, 2))
