"""The part of the model that is about places with machines of your own: racks, the way in, the way to the cloud."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from cluster.ceph import Ceph
from cluster.links import Links
from cluster.model import Model
from cluster.provisioning import Provisioning
from cluster.quantities import SMALLEST_MTU, Address, Name, Network, Port, refuse
from cluster.references import reference_or
from cluster.registries import Registries
from cluster.roce import Roce
from cluster.words import KeyPath, Login


class SiteSsh(Model):
    """How Ansible reaches a site's machines."""

    user: Login = "root"
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
        message = "holds what may be the key itself; a reference to a secret must stand here"
        hint = "store it with: pulumi config set --secret vpn-<site>-<router>, and write {secret: that name}"
        return reference_or(refuse("VPN-004", message, hint), value)


# "CreateCustomerGateway": the ARN of a private certificate in AWS Certificate Manager.
_ARN = r"arn:aws:acm:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:certificate/[A-Za-z0-9_-]+"
# Letters and X.680's PrintableString without the comma and =, which divide; & and @ as names of firms have them. No *: where a
# part is one, strongSwan takes whatever a certificate of the authority has there for the gateway's.
_PART = r"[A-Za-z]+=[\w'()+./:?&@-]+( [\w'()+./:?&@-]+)*"
_DN = rf"{_PART}(, ?{_PART})*"


def parse_arn(value: Any) -> Any:
    """The ARN of a certificate in AWS Certificate Manager."""
    if isinstance(value, str) and not re.fullmatch(_ARN, value):
        hint = "write what `aws acm list-certificates` shows: arn:aws:acm:us-east-1:123456789012:certificate/<id>"
        raise refuse("VPN-010", f"{value!r} isn't the ARN of a certificate in AWS Certificate Manager", hint)
    return value


def parse_subject(value: Any) -> Any:
    """A certificate's subject, the country first."""
    if isinstance(value, str) and not re.fullmatch(_DN, value):
        hint = "write what `openssl x509 -noout -subject -nameopt oneline,-space_eq` shows: C=US, O=Example, CN=name"
        rule = "letters, digits and '()+./:?&@- with single spaces"
        raise refuse("VPN-010", f"{value!r} isn't a certificate's subject: {rule}", hint)
    return value


CertificateArn = Annotated[str, BeforeValidator(parse_arn), WithJsonSchema({"type": "string", "pattern": f"^{_ARN}$"})]
Subject = Annotated[str, BeforeValidator(parse_subject), WithJsonSchema({"type": "string", "pattern": f"^{_DN}$"})]


class RouterCertificate(Model):
    """How a router and the gateway know each other by certificates. Paths begin at the cluster's folder. The router's key
    is made on the router (`vpn request`) and stays there."""

    arn: CertificateArn
    """A certificate of AWS Certificate Manager, signed by the subordinate authority that signs the router's too."""
    ca: KeyPath
    """PEM of the authorities: first the one that signs both ends' certificates, last a root. Nobody else is believed."""
    file: KeyPath
    """PEM of the router's own certificate."""
    names: tuple[Subject, ...] = Field(default=(), strict=False, max_length=2)
    """Subjects of the gateway's two certificates. Default: those that AWS gives."""


class EdgeRouter(Model):
    """A router at a site's edge. Two IPsec tunnels lead from it, one to each end of the cloud's gateway."""

    address: Address
    """Public, as the gateway sees it; a NAT may stand in between."""
    psk: PreSharedKey | None = None
    """Pre-shared key of the router's tunnels; or `certificate`."""
    certificate: RouterCertificate | None = None
    """In place of `psk`, where the cloud's gateway takes certificates: AWS."""
    host: Address | None = None
    """Where `vpn configure` reaches the Debian machine that is the router, by the site's ssh. Default: something else is
    the router, and `show vpn` says what it must be told."""


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
    registries: Registries | None = None
    """Mirrors that the site's machines get images from. Default: `artefacts.registry`, or the registries themselves."""
    ssh: SiteSsh = SiteSsh()
    """How Ansible reaches the machines."""
