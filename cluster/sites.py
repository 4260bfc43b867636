"""The model of sites: racks, access to machines, and the connection to the region."""

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
    """Login name: root, or a user with sudo without password."""
    port: Port = 22
    """TCP port of sshd."""
    private_key: KeyPath | None = None
    """Path of the private key on the operator's machine. Default: the SSH agent."""


class PreSharedKey(Model):
    """Where a pre-shared key is stored, which is never a file of the inventory."""

    secret: Name
    """Name of the secret in the stack's configuration, as in: menagerie secret CLUSTER <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_key(cls, value: Any) -> Any:
        message = "may contain the key itself; it must be a reference to a secret"
        hint = "store the key with ./menagerie secret <cluster> vpn-<site>-<router>, and write {secret: vpn-<site>-<router>}"
        return reference_or(refuse("VPN-004", message, hint), value)


# "CreateCustomerGateway": the ARN of a private certificate in AWS Certificate Manager.
_ARN = r"arn:aws:acm:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:certificate/[A-Za-z0-9_-]+"
# Letters and X.680's PrintableString without the separators comma and =; & and @ occur in company names. No *: for strongSwan
# it is a wildcard, so any certificate of the CA would match as the gateway's.
_PART = r"[A-Za-z]+=[\w'()+./:?&@-]+( [\w'()+./:?&@-]+)*"
_DN = rf"{_PART}(, ?{_PART})*"


def parse_arn(value: Any) -> Any:
    """Validate the ARN of a certificate in AWS Certificate Manager."""
    if isinstance(value, str) and not re.fullmatch(_ARN, value):
        hint = "write an ARN from `aws acm list-certificates`: arn:aws:acm:us-east-1:123456789012:certificate/<id>"
        raise refuse("VPN-010", f"{value!r} isn't the ARN of a certificate in AWS Certificate Manager", hint)
    return value


def parse_subject(value: Any) -> Any:
    """Validate a certificate's subject, with the country first."""
    if isinstance(value, str) and not re.fullmatch(_DN, value):
        hint = (
            "write the subject from `openssl x509 -noout -subject -nameopt oneline,-space_eq`: C=US, O=Example, CN=name"
        )
        rule = "letters, digits and '()+./:?&@- with single spaces"
        raise refuse("VPN-010", f"{value!r} isn't a certificate's subject: {rule}", hint)
    return value


CertificateArn = Annotated[str, BeforeValidator(parse_arn), WithJsonSchema({"type": "string", "pattern": f"^{_ARN}$"})]
Subject = Annotated[str, BeforeValidator(parse_subject), WithJsonSchema({"type": "string", "pattern": f"^{_DN}$"})]


class RouterCertificate(Model):
    """Certificates with which a router and the gateway authenticate. Paths are relative to the cluster's folder. The router's
    key is created on the router (`vpn request`) and stays there."""

    arn: CertificateArn
    """ARN of a certificate in AWS Certificate Manager, signed by the same subordinate CA as the router's."""
    ca: KeyPath
    """PEM file of the CAs: first the one that signs both ends' certificates, last a root. No others are trusted."""
    file: KeyPath
    """PEM file of the router's own certificate."""
    names: tuple[Subject, ...] = Field(default=(), strict=False, max_length=2)
    """Subjects of the gateway's two certificates. Default: those that AWS assigns."""


class EdgeRouter(Model):
    """A router at a site's edge, with two IPsec tunnels: one to each end of the cloud's gateway."""

    address: Address
    """Public address of the router for the gateway; there may be a NAT in between."""
    psk: PreSharedKey | None = None
    """Pre-shared key of the router's tunnels, unless it has a `certificate`."""
    certificate: RouterCertificate | None = None
    """Certificate instead of `psk`, if the cloud's gateway supports it: only AWS."""
    host: Address | None = None
    """Address at which `vpn configure` reaches the router, a Debian machine, with the site's ssh. Default: the router is
    another kind of device, and `show vpn` prints the settings for it."""


class Vpn(Model):
    """VPN between a site and the gateway of the cluster's cloud: IPsec (IKEv2), with BGP inside."""

    asn: int = Field(ge=1, le=2**32 - 2)
    """BGP autonomous system number of the site's routers, either private or your own."""
    routers: dict[Name, EdgeRouter] = Field(min_length=1)
    """Edge routers by name. Add new ones at the end: tunnels get their addresses in this order."""
    inside: Network
    """Link-local range for addresses inside the tunnels. Each tunnel takes a /30, so two routers need a /28."""
    networks: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges of the site that the region can reach in addition to its racks, such as those of researchers or
    administrators."""
    underlay_mtu: int = Field(default=1500, ge=1280, le=9216)
    """MTU in bytes of the path that encrypted packets take to the gateway."""
    allow_single_router: bool = False
    """Accept that losing one router cuts the site off."""


class Site(Model):
    """A place with your own machines, joined to the cluster's region."""

    racks: dict[Name, Network]
    """Layer-2 networks: name -> range. Hosts of one rack reach each other without a router."""
    link_mtu: int = Field(default=1500, ge=1280, le=9216)
    """MTU in bytes of the hosts' links."""
    uplink_mtu: int = Field(default=1500, ge=SMALLEST_MTU, le=9216)
    """Smallest MTU in bytes between racks and towards the region (1400 through IPsec other than `vpn`)."""
    vpn: Vpn | None = None
    """VPN to the region. Default: the site has another connection to the region, which Menagerie doesn't manage."""
    links: dict[Name, Links] = Field(default={})
    """Pool -> name of a link -> its port and settings. Links of pools left out aren't changed."""
    roce: Roce | None = None
    """RDMA over Ethernet between the site's machines. Default: none."""
    ceph: Ceph | None = None
    """Storage on disks of the site's machines. Default: none."""
    provisioning: Provisioning | None = None
    """How bare machines of the site are installed. Default: they are already installed."""
    price_kwh: float | None = None
    """US dollars of a kilowatt-hour at the site, such as 0.14, for the ledger. Default: unknown, so energy has no price. It is shown
    apart: a pool's price_hour may contain it."""
    registries: Registries | None = None
    """Mirrors from which the site's machines pull images. Default: `artefacts.registry`, or the registries themselves."""
    ssh: SiteSsh = SiteSsh()
    """How Ansible reaches the machines."""
