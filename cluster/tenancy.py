"""Whose cluster it is: the directory of people and teams, and what a namespace of theirs may have. Settings of a spec."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from itertools import accumulate
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from cluster.allocations import Allocation, Borrowing
from cluster.model import Model
from cluster.quantities import DurationMs, Name, Share, refuse
from cluster.references import reference_or
from cluster.words import FilePath, KeyPath, Title

TEAM_LABEL = "menagerie.dev/team"
"""On a namespace: the team whose machines and storage classes it may use."""

TENANT_LABEL = "menagerie.dev/tenant"
"""On a namespace of ours: person or team."""

# apimachinery, "pkg/api/resource": binary and decimal suffixes of a Quantity. Smaller than milli is of no use here.
_SUFFIXES: dict[str, int | Decimal] = {
    "": 1,
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
}
_SUFFIXES |= {f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTP", start=1)}
_QUANTITY = r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?"
# A qualified name of Kubernetes with at most two parts, as ResourceQuota has them: count/jobs.batch, requests.nvidia.com/gpu.
_RESOURCE = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_URL = r"ldaps?://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?/?"


# What templates and shells look for, and whatever ends a line. Both forms have an escape for every character.
_SPECIAL = re.compile(r"[{}$`\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_ESCAPED = "write a backslash and two hexadecimal digits for a character that is none of a name, \\24 for $ ({})"


def amount(quantity: str) -> Decimal:
    """What a quantity of Kubernetes is in numbers: "500m" -> 0.5. ValueError where it is none."""
    found = re.fullmatch(_QUANTITY, quantity)
    if not found:
        raise ValueError(f"{quantity} is no quantity")
    return Decimal(found[1]) * _SUFFIXES[found[2] or ""]


def parse_quantity(value: Any) -> Any:
    """``64``, ``"500m"`` or ``"2Ti"``, as text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and re.fullmatch(_QUANTITY, text):
        return text
    raise refuse("TEN-006", f"{value!r} is no quantity of Kubernetes", 'write 64, "500m" or "2Ti"')


def parse_resource(value: Any) -> Any:
    """A name of a resource, as quotas have them."""
    if isinstance(value, str) and re.fullmatch(_RESOURCE, value):
        return value
    raise refuse("TEN-006", f"{value!r} is no resource", "write requests.nvidia.com/gpu, limits.memory or pods")


def parse_prefix(value: Any) -> Any:
    """What a namespace's name begins with."""
    if value == "" or (isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9-]{0,19}", value)):
        return value
    hint = "write lower case letters, digits and '-', at most 20, a letter first: user-"
    raise refuse("TEN-004", f"{value!r} is no beginning of a namespace's name", hint)


def parse_url(value: Any) -> Any:
    """The URL of an LDAP server: what is searched stands in other keys."""
    if isinstance(value, str) and re.fullmatch(_URL, value):
        return value
    hint = "write ldaps://ldap.example.org, or with a port behind it; bases and filters have keys of their own"
    raise refuse("TEN-002", "isn't the URL of an LDAP server", hint)


def parse_filter(value: str) -> str:
    """A search filter with its parentheses (RFC 4515)."""
    if _SPECIAL.search(value):
        raise refuse("TEN-005", f"{value!r} is no search filter that can be passed on", _ESCAPED.format("RFC 4515"))
    depths = list(accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in value))
    if value[:1] == "(" and depths[-1] == 0 and 0 not in depths[:-1]:
        return value
    raise refuse("TEN-005", f"{value} is no search filter", "write it in parentheses, all closed: (objectClass=person)")


def parse_attribute(value: str) -> str:
    """The name of an attribute (RFC 4512, 1.4)."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", value):
        return value
    raise refuse("TEN-005", f"{value!r} is no attribute", "write its name: uid")


def parse_base(value: str) -> str:
    """A distinguished name, roughly: the server knows better."""
    if _SPECIAL.search(value):
        raise refuse(
            "TEN-005", f"{value!r} is no distinguished name that can be passed on", _ESCAPED.format("RFC 4514")
        )
    if re.fullmatch(r" *[A-Za-z0-9][A-Za-z0-9.-]* *=[^=]+(, *[A-Za-z0-9.-]+ *=[^=]+)*", value):
        return value
    raise refuse("TEN-005", f"{value!r} is no distinguished name", "write ou=people,dc=example,dc=org")


_EXAMPLE = {"examples": ["64", "500m", "2Ti"]}
Quantity = Annotated[str, BeforeValidator(parse_quantity), WithJsonSchema({"type": ["string", "integer"], **_EXAMPLE})]
Resource = Annotated[str, BeforeValidator(parse_resource), WithJsonSchema({"type": "string"})]
Prefix = Annotated[str, BeforeValidator(parse_prefix), WithJsonSchema({"type": "string"})]
LdapUrl = Annotated[str, BeforeValidator(parse_url), WithJsonSchema({"type": "string"})]
Filter = Annotated[str, AfterValidator(parse_filter)]
Attribute = Annotated[str, AfterValidator(parse_attribute)]
Base = Annotated[str, AfterValidator(parse_base)]


class BindPassword(Model):
    """Where the password of the directory is: never in a file of the inventory."""

    secret: Name
    """Its name in the stack's configuration: menagerie secret CLUSTER <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_password(cls, value: Any) -> Any:
        message = "holds what may be the password itself; a reference to a secret must stand here"
        hint = "store it with: menagerie secret CLUSTER ldap, and write {secret: ldap}"
        return reference_or(refuse("TEN-003", message, hint), value)


class LdapPeople(Model):
    """Which entries are people. The defaults are those of inetOrgPerson (RFC 2798)."""

    base: Base
    """Where they are: all below it is searched."""
    filter: Filter = "(objectClass=inetOrgPerson)"
    """Which entries below it are people."""
    left: Filter | None = None
    """Which of these have left or are locked, e.g. (nsAccountLock=TRUE). Default: who has left is no longer there."""
    id: Attribute = "uid"
    """Their names as the API knows users. It must not change: a person with another is another person."""
    full_name: Attribute = "cn"
    """Their names as people know them."""


class LdapTeams(Model):
    """Which entries are teams. The defaults fit groupOfNames (RFC 4519), groupOfUniqueNames and posixGroup (RFC 2307)."""

    base: Base
    """Where they are: all below it is searched."""
    filter: Filter = "(|(objectClass=groupOfNames)(objectClass=groupOfUniqueNames)(objectClass=posixGroup))"
    """Which entries below it are teams."""
    id: Attribute = "cn"
    """Their names. They must not change: a team with another is another team."""
    members: tuple[Attribute, ...] = Field(default=("member", "uniqueMember", "memberUid"), strict=False, min_length=1)
    """Attributes with members, by distinguished name or by people's id."""
    owners: tuple[Attribute, ...] = Field(default=("owner",), strict=False)
    """Attributes with owners, alike."""


class Ldap(Model):
    """A directory that speaks LDAP (RFC 4511)."""

    urls: tuple[LdapUrl, ...] = Field(min_length=1, strict=False)
    """ldaps://host, or ldap://host with start_tls. The first that answers is asked."""
    start_tls: bool = False
    """With ldap://: begin TLS before anything is said."""
    allow_plaintext: bool = False
    """Accept that password and answers go over the network in clear, and can be changed on the way."""
    ca: KeyPath | None = None
    """PEM of the authorities that sign the servers' certificates, a file beside cluster.yaml. Default: the machine's."""
    bind_dn: Base | None = None
    """Whom it logs in as. Default: nobody."""
    password: BindPassword | None = None
    """Of `bind_dn`."""
    timeout: DurationMs = 30_000
    """Longest wait for a server, for one of its answers, and for all of them together ten times that."""
    page_size: int = Field(default=500, ge=1, le=1000)
    """Entries in an answer; Active Directory gives at most 1000."""
    people: LdapPeople
    """Which entries are people."""
    teams: LdapTeams
    """Which entries are teams."""


class DirectorySource(Model):
    """Where people and teams are written: one of the two."""

    file: FilePath | None = None
    """A YAML file beside cluster.yaml."""
    ldap: Ldap | None = None
    """A directory server."""


class ContainerLimits(Model):
    """What one container asks for where it does not say, and what it may have: resource -> quantity."""

    default: dict[Resource, Quantity] = Field(default={})
    """Limit of a container that has none."""
    default_request: dict[Resource, Quantity] = Field(default={})
    """Request of a container that has none. Default: its limit."""
    max: dict[Resource, Quantity] = Field(default={})
    """The most that a container may have."""


class PodSecurity(StrEnum):
    """Levels of Kubernetes' Pod Security Standards."""

    RESTRICTED = "restricted"
    BASELINE = "baseline"
    PRIVILEGED = "privileged"
    """No limits: who may make a pod has its host."""


class Allowance(Model):
    """What a namespace may have."""

    quota: dict[Resource, Quantity] = Field(default={})
    """As in a ResourceQuota: requests.nvidia.com/gpu: 64. Counts that are not named have defaults (docs/how-to/teams.md); the rest has no limit."""
    limits: ContainerLimits = ContainerLimits()
    """Of its containers."""
    pod_security: PodSecurity | None = Field(default=None, strict=False)
    """Which pods are let in. Default: tenancy.pod_security."""


class PeopleAllowance(Allowance):
    """What the namespace of a person may have."""

    prefix: Prefix = "user-"
    """What the name of a person's namespace begins with."""


class TeamsAllowance(Allowance):
    """What the namespace of a team may have."""

    prefix: Prefix = "team-"
    """What the name of a team's namespace begins with."""
    only: dict[Title, Allowance] = Field(default={})
    """Team, as the directory calls it -> what it has otherwise: quotas by resource, the rest as a whole."""


class Leavers(StrEnum):
    """What becomes of what runs in the namespace of somebody who left. Nothing of it is ever deleted."""

    KEEP = "keep"
    """It runs on; nothing new starts."""
    STOP = "stop"
    """Scaled to nothing, CronJobs and Jobs suspended; it comes back as it was with whoever does."""


class Tenancy(Model):
    """A namespace for each person and each team, kept in step with a directory."""

    directory: DirectorySource
    """Where people and teams are written."""
    people: PeopleAllowance = PeopleAllowance()
    """What a person's namespace may have."""
    teams: TeamsAllowance = TeamsAllowance()
    """What a team's namespace may have."""
    pod_security: PodSecurity = Field(default=PodSecurity.BASELINE, strict=False)
    """Which pods are let in: baseline, as everywhere in the cluster; restricted is warned of and audited."""
    leavers: Leavers = Field(default=Leavers.KEEP, strict=False)
    """keep, or stop: what becomes of what runs in the namespace of somebody who left."""
    refuse_loss: Share = "50%"
    """A number or a share of people, of teams or of memberships that is never believed to have gone at once."""
    allocations: tuple[Allocation, ...] = Field(default=(), strict=False)
    """Which team has how many hosts of which pool; of too few, those before get theirs first. Default: all are everybody's."""
    borrowing: Borrowing = Borrowing()
    """What may run on a team's hosts while they are idle."""
    overcommit: int = Field(default=1, ge=1, le=1_000_000)
    """How many times etcd.main.quota all namespaces together may hold, were each object the largest that etcd takes. `check` warns above."""
    controllers: Name | None = None
    """Pool whose hosts run Menagerie's own controllers: who is root on one of them has their rights. Default: one with two hosts
    and without GPUs, that of storage's controllers before others."""
    user_prefix: str = Field(default="", pattern=r"^([a-z0-9:_/.][a-z0-9:_/.-]*)?$", max_length=40)
    """What the API's names of users begin with, before people's ids: oidc: for --oidc-username-prefix=oidc:."""


def secret_names(tenancy: Tenancy | None) -> tuple[str, ...]:
    """Names of the secrets that the stack's configuration must hold for the directory."""
    ldap = tenancy.directory.ldap if tenancy else None
    return (ldap.password.secret,) if ldap and ldap.password else ()
