"""VPN-009 and VPN-010: how edge routers and gateways authenticate. The model itself reports parts of VPN-010."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.sites import EdgeRouter, RouterCertificate
from cluster.vpn import ENDS, gateway


def _routers(subject: Subject) -> Iterator[tuple[Where, str, EdgeRouter]]:
    """Yield (place, name, router) of every edge router."""
    for site, settings in subject.spec.sites.items():
        for name, router in settings.vpn.routers.items() if settings.vpn else ():
            yield ("sites", site, "vpn", "routers", name), name, router


def _certificates(subject: Subject) -> Iterator[tuple[Where, str, RouterCertificate]]:
    for where, name, router in _routers(subject):
        if router.certificate:
            yield (*where, "certificate"), name, router.certificate


def one_authentication(subject: Subject) -> Iterator[Finding]:
    """A router has either a pre-shared key or a certificate, whichever the cloud's gateway accepts."""
    ours, cloud = gateway(subject.spec), subject.spec.control_plane.cloud
    for where, name, router in _routers(subject):
        if router.psk is None and router.certificate is None:
            hint = f"add psk: {{secret: vpn-{where[1]}-{name}}}"
            yield Finding(
                where, f"edge router {name} has neither psk nor certificate, so no gateway would accept it", hint
            )
        elif router.psk and router.certificate:
            message = f"edge router {name} has a psk and a certificate; a gateway uses only one of them"
            yield Finding(where, message, "remove one of the two", also=((*where, "psk"), (*where, "certificate")))
        if router.certificate and ours.no_certificates:
            message = f"edge router {name} has a certificate, but tunnels of {cloud} can't use one"
            yield Finding(
                (*where, "certificate"),
                message,
                f"replace it: psk: {{secret: vpn-{where[1]}-{name}}}",
                notes=(ours.no_certificates,),
            )


def region_of_the_arn(subject: Subject) -> Iterator[Finding]:
    """A certificate is in the gateway's region: AWS Certificate Manager is regional."""
    region = subject.spec.control_plane.region
    for where, name, certificate in _certificates(subject):
        there = certificate.arn.split(":")[3]
        if region and there != region and not gateway(subject.spec).no_certificates:
            message = f"the certificate of edge router {name} is in {there}, but the gateway is in {region}"
            yield Finding(
                (*where, "arn"),
                message,
                f"write the ARN of a certificate in {region}",
                also=(("control_plane", "region"),),
            )


def names_of_both_ends(subject: Subject) -> Iterator[Finding]:
    """There is one name for each end of the gateway, as each has its own certificate."""
    for where, name, certificate in _certificates(subject):
        names = certificate.names
        if names and len(set(names)) != ENDS:
            message = (
                f"certificate.names of edge router {name} has {len(set(names))} subject, but a gateway has {ENDS} ends"
            )
            yield Finding((*where, "names"), message, "write the subjects of both ends, or leave names out")


def own_files(subject: Subject) -> Iterator[Finding]:
    """Each router has its own certificate: its key is created on the router and never leaves it."""
    places: dict[str, Where] = {}
    for where, _, certificate in _certificates(subject):
        place = (*where, "file")
        before = places.setdefault(certificate.file, place)
        if before != place:
            message = (
                f"{certificate.file} is given to {show(before[:-2])} and {show(where[:-1])}, but each has its own key"
            )
            yield Finding(place, message, "write the file of this router's certificate", also=(before,))
        if certificate.file == certificate.ca:
            message = f"{certificate.file} is both the router's certificate and its CA"
            yield Finding(place, message, "write the file of the router's certificate", also=((*where, "ca"),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("VPN-009", one_authentication),
    ("VPN-010", region_of_the_arn),
    ("VPN-010", names_of_both_ends),
    ("VPN-010", own_files),
)
