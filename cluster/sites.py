"""The part of the model that is about places with machines of your own: racks, the way in, the way to the cloud."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cluster.ceph import Ceph
from cluster.links import Links
from cluster.model import Model
from cluster.provisioning import Provisioning
from cluster.quantities import SMALLEST_MTU, Address, KeyPath, Name, Network, Port, parse_name, refuse
from cluster.roce import Roce


class SiteSsh(Model):
    """How Ansible reaches a site's machines."""

    user: str = "root"
    """Login name; root, or one that may use sudo without a password."""
    port: Port = 22
    """TCP port of sshd."""
    private_key: KeyPath | None = None
    """Path of a private key on the operator's machine. Default: the SSH agent."""


class PreSharedKey(Model):
    """Where a pre-shared key is: never in a file of the inventory."""

    secret: Name
    """Its name in the stack's configuration: pulumi config set --secret <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_key(cls, value: Any) -> Any:
        """What could be a key is refused without being repeated: problems end in terminals and logs."""
        secret = value.get("secret") if isinstance(value, dict) else value
        try:
            if isinstance(value, dict | None) and (secret is None or parse_name(secret)):
                return value
        except PydanticCustomError:
            pass
        message = "holds what may be the key itself; a reference to a secret must stand here"
        hint = "store it with: pulumi config set --secret vpn-<site>-<router>, and write {secret: that name}"
        raise refuse("VPN-004", message, hint)


class EdgeRouter(Model):
    """A router at a site's edge. Two IPsec tunnels lead from it, one to each end of the cloud's gateway."""

    address: Address
    """Public, as the gateway sees it; a NAT may stand in between."""
    psk: PreSharedKey
    """Pre-shared key of the router's tunnels."""
    host: Address | None = None
    """Where `vpn configure` reaches the Debian machine that is the router, by the site's ssh. Default: something else is
    the router, and `vpn show` says what it must be told."""


class Vpn(Model):
    """How a site is joined to the VPN gateway of the cluster's cloud: IPsec (IKEv2), with BGP inside."""

    asn: int = Field(ge=1, le=2**32 - 2)
    """BGP autonomous system number of the site's routers: a private one, or your own."""
    routers: dict[Name, EdgeRouter] = Field(min_length=1)
    """The edge routers: name -> router. A new one goes last, for tunnels have their addresses in this order."""
    inside: Network
    """Addresses inside the tunnels: a /30 of it for each, so a /28 for two routers. Link-local."""
    networks: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges of the site that the region is to reach besides its racks: of researchers, of administrators."""
    underlay_mtu: int = Field(default=1500, ge=1280, le=9216)
    """Bytes, of the way that encrypted packets take to the gateway."""
    allow_single_router: bool = False
    """Accept that the loss of one router cuts the site off."""


class Site(Model):
    """A place with machines of your own, joined to the cluster's region."""

    racks: dict[Name, Network]
    """Layer-2 networks: name -> range. Hosts of one rack reach each other without a router."""
    link_mtu: int = Field(default=1500, ge=1280, le=9216)
    """Bytes, of the hosts' links."""
    uplink_mtu: int = Field(default=1500, ge=SMALLEST_MTU, le=9216)
    """Bytes, of the narrowest link between racks and towards the region (1400 through IPsec other than `vpn`)."""
    vpn: Vpn | None = None
    """Default: the site reaches the region by a line that isn't this cluster's business."""
    links: dict[Name, Links] = Field(default={})
    """Pool -> name of a link -> the port that it is, and its settings. Pools left out keep what they have."""
    roce: Roce | None = None
    """RDMA between the site's machines, over Ethernet. Default: none."""
    ceph: Ceph | None = None
    """Storage on disks of the site's own machines. Default: none."""
    provisioning: Provisioning | None = None
    """How the site's machines are installed from nothing. Default: they come installed."""
    ssh: SiteSsh = SiteSsh()
    """How Ansible reaches the machines."""
