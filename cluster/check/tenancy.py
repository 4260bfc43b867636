"""TEN-001 to TEN-008, TEN-016: directories that can't be read safely, and contradictory allowances."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import counts
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.tenancy import Allowance, ContainerLimits, Ldap, PodSecurity, Tenancy, amount

_PLACE: Where = ("tenancy",)
_LDAP: Where = (*_PLACE, "directory", "ldap")


def source(subject: Subject) -> Iterator[Finding]:
    """There is exactly one directory: two could disagree."""
    if tenancy := subject.spec.tenancy:
        where = (*_PLACE, "directory")
        if tenancy.directory.file is None and tenancy.directory.ldap is None:
            yield Finding(where, f"{show(where)} has neither file nor ldap", "write file: people.yaml, or ldap")
        if tenancy.directory.file is not None and tenancy.directory.ldap is not None:
            yield Finding(
                where, f"{show(where)} has both file and ldap, which could disagree about people", "remove one of them"
            )


def encryption(subject: Subject) -> Iterator[Finding]:
    """Connections to LDAP are encrypted: by changing an answer on the way, anybody could join any team."""
    ldap = _ldap(subject)
    if ldap is None:
        return
    for index, url in enumerate(ldap.urls):
        where = (*_LDAP, "urls", index)
        if url.startswith("ldaps:") and ldap.start_tls:
            yield Finding(where, f"{url} already uses TLS, and start_tls would start it again", "remove start_tls")
        if url.startswith("ldap:") and not ldap.start_tls and not ldap.allow_plaintext:
            message = f"{url} isn't encrypted: the password could be read, and memberships changed, on the way"
            hint = f"write {url.replace('ldap:', 'ldaps:')}, or add start_tls: true; to accept the risk, add allow_plaintext: true"
            yield Finding(where, message, hint)
    if ldap.allow_plaintext and (ldap.start_tls or all(url.startswith("ldaps:") for url in ldap.urls)):
        where = (*_LDAP, "allow_plaintext")
        yield Finding(where, f"{show(where)} is true, but all connections are encrypted", "remove it")


def login(subject: Subject) -> Iterator[Finding]:
    """bind_dn and password come together: a name without a password is an anonymous login (RFC 4513, 5.1.2)."""
    ldap = _ldap(subject)
    if ldap and ldap.bind_dn and not ldap.password:
        message = "bind_dn has no password; servers treat that as an anonymous login, and show less"
        yield Finding((*_LDAP, "bind_dn"), message, "add password: {secret: ldap}", also=((*_LDAP, "password"),))
    if ldap and ldap.password and not ldap.bind_dn:
        where = (*_LDAP, "password")
        yield Finding(where, "password has no bind_dn", "add bind_dn, or remove it", also=((*_LDAP, "bind_dn"),))


def prefixes(subject: Subject) -> Iterator[Finding]:
    """Prefixes differ: otherwise a person and a team with the same name get the same namespace."""
    tenancy = subject.spec.tenancy
    if tenancy and tenancy.people.prefix == tenancy.teams.prefix:
        where = (*_PLACE, "people", "prefix")
        message = (
            f'namespaces of people and teams both have the prefix "{tenancy.people.prefix}", so their names can clash'
        )
        yield Finding(where, message, "write another prefix", severity="warning", also=((*_PLACE, "teams", "prefix"),))


def limits(subject: Subject) -> Iterator[Finding]:
    """Default requests, default limits and maxima rise in that order; the API server refuses a LimitRange otherwise."""
    for where, allowance in _allowances(subject.spec.tenancy):
        for lower, upper in (("default", "max"), ("default_request", "default"), ("default_request", "max")):
            yield from _above((*where, "limits"), allowance.limits, lower, upper)


def refusal_possible(subject: Subject) -> Iterator[Finding]:
    """refuse_loss is below 100%: an empty directory is refused anyway."""
    tenancy = subject.spec.tenancy
    if tenancy and tenancy.refuse_loss == "100%":
        where = (*_PLACE, "refuse_loss")
        yield Finding(
            where, f"{show(where)} 100% accepts any loss except that of everybody", "write less, for example 50%"
        )


def privileged(subject: Subject) -> Iterator[Finding]:
    """Warn of privileged pods: they control their host, and with it every other pod there."""
    tenancy = subject.spec.tenancy
    places = [(where, allowance.pod_security) for where, allowance in _allowances(tenancy)]
    places += [(_PLACE, tenancy.pod_security)] if tenancy else []
    for place, level in places:
        if level is PodSecurity.PRIVILEGED:
            where = (*place, "pod_security")
            message = f"{show(where)} privileged gives everybody who can create a pod there control of its host and all pods on it"
            yield Finding(
                where, message, "write baseline, and allow more only for the team that needs it", severity="warning"
            )


def fits(subject: Subject) -> Iterator[Finding]:
    """No single tenant can fill etcd main.

    `controllers.tenancy.directory.check` checks all tenants together, as it knows the people.
    """
    tenancy, room = subject.spec.tenancy, subject.spec.etcd.main.quota
    if tenancy is None:
        return
    listed: list[tuple[Where, str, dict[str, str]]] = [
        (("people",), "a person", counts.people(tenancy.people)),
        (("teams",), "a team", counts.teams(tenancy.teams)),
    ]
    listed += [
        (("teams", "only", name), f"team {name}", counts.teams(counts.team(tenancy, name)))
        for name in tenancy.teams.only
    ]
    for place, who, quota in listed:
        number = counts.objects(quota)
        if number * counts.LARGEST > room * tenancy.overcommit:
            where = (*_PLACE, *place)
            message = f"{who} may have {counts.size_estimate(number)}; etcd.main.quota is {counts.gibibytes(room)}"
            hint = f"lower count/… in {show((*where, 'quota'))}, or accept it with tenancy.overcommit: {counts.times(number, room)}"
            yield Finding(where, message, hint, severity="warning")


def _ldap(subject: Subject) -> Ldap | None:
    return subject.spec.tenancy.directory.ldap if subject.spec.tenancy else None


def _allowances(tenancy: Tenancy | None) -> Iterator[tuple[Where, Allowance]]:
    if tenancy:
        yield (*_PLACE, "people"), tenancy.people
        yield (*_PLACE, "teams"), tenancy.teams
        yield from (((*_PLACE, "teams", "only", name), only) for name, only in tenancy.teams.only.items())


def _above(where: Where, own: ContainerLimits, lower: str, upper: str) -> Iterator[Finding]:
    most: dict[str, str] = getattr(own, upper)
    for name, quantity in getattr(own, lower).items():
        if name in most and amount(quantity) > amount(most[name]):
            at = (*where, lower, name)
            yield Finding(
                at,
                f"{show(at)} {quantity} is above {upper}, {most[name]}; the API server would refuse it",
                f"write {most[name]} or less",
                also=((*where, upper, name),),
            )


RULES: tuple[tuple[str, Rule], ...] = (
    ("TEN-001", source),
    ("TEN-002", encryption),
    ("TEN-003", login),
    ("TEN-004", prefixes),
    ("TEN-006", limits),
    ("TEN-007", refusal_possible),
    ("TEN-008", privileged),
    ("TEN-016", fits),
)
