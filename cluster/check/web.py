"""WEB-001: what pages in the cluster need."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where


def needs(subject: Subject) -> Iterator[Finding]:
    """Pages need controllers, a key where the ledger is in a cloud's bucket, and TLS where others reach them."""
    where: Where = ("web",)
    spec = subject.spec
    web = spec.web
    if web is None:
        return
    if spec.tenancy is None:
        message = "web needs tenancy: without it there are no controllers, and no teams whose bills could be shown"
        yield Finding(where, message, "add tenancy (docs/how-to/teams.md), or remove web", also=(("tenancy",),))
    if spec.metering and web.key is None and not subject.cluster.is_lab:
        message = (
            "web has no key: in a cloud, its pods have no login for the bucket of the ledger, so no bill could be shown"
        )
        hint = "store one with ./menagerie secret <cluster> ledger-reader, and write key: {secret: ledger-reader}"
        yield Finding(where, message, hint, also=((*where, "key"), ("metering",)))
    if web.node_port is None:
        return
    port = (*where, "node_port")
    if web.certificate is None:
        message = "web.node_port without web.certificate would send tokens of people over the network in clear"
        hint = "store a certificate with its key (docs/how-to/web.md), and write certificate: {secret: <name>}"
        yield Finding(port, message, hint, also=((*where, "certificate"),))
    if not spec.network.node_ports.outside:
        message = "nobody outside the cluster could reach web.node_port: network.node_ports.outside names no range"
        hint = "name the ranges that people come from, or remove node_port and use kubectl port-forward"
        yield Finding(port, message, hint, also=(("network", "node_ports", "outside"),))


RULES: tuple[tuple[str, Rule], ...] = (("WEB-001", needs),)
