"""What costs money in a cloud: kinds of things, and numbers of equal ones. Without prices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class CostKind(StrEnum):
    """Kinds of items, in display order."""

    MACHINE = "machines"
    DISK = "disks"
    PUBLIC_ADDRESS = "public addresses"
    LOAD_BALANCER = "load balancers"
    NAT = "NAT gateways"
    VPN_GATEWAY = "VPN gateways"
    VPN_CONNECTION = "VPN connections"
    ENDPOINT = "private endpoints"
    KEY = "keys"
    SECRET = "secrets"
    DNS_ZONE = "DNS zones"
    BUCKET = "buckets"


@dataclass(frozen=True)
class CostItem:
    """A number of equal things. least, most: how many, which differ if a group scales.

    what: its type and facts for people, "" for none. type: the cloud's name, by which its price is looked up. gib, iops:
    of each disk; gib is 0 for one as large as its image. spot: whether the machine is a spot machine.
    """

    kind: CostKind
    what: str = ""
    least: int = 1
    most: int = 1
    gib: int = 0
    type: str = ""
    iops: int = 0
    spot: bool = False

    def times(self, least: int, most: int) -> CostItem:
        return replace(self, least=self.least * least, most=self.most * most)
