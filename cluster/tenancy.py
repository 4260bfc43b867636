"""Settings of a spec for tenants: the directory of people and teams, and what their namespaces may have."""

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
"""Label of a namespace: the team whose machines and storage classes it may use."""

TENANT_LABEL = "menagerie.dev/tenant"
"""Label of a namespace that Menagerie manages: person or team."""

# apimachinery, "pkg/api/resource": binary and decimal suffixes of a Quantity. Those below milli aren't useful here.
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
# A qualified name of Kubernetes with at most two parts, as in ResourceQuota: count/jobs.batch, requests.nvidia.com/gpu.
_RESOURCE = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_URL = r"ldaps?://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?/?"


# Characters that templates and shells interpret, and line breaks. Filters and names can escape every character.
_SPECIAL = re.compile(r"[{}$`\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_ESCAPED = "escape special characters as a backslash and two hexadecimal digits, for example \\24 for $ ({})"


def amount(quantity: str) -> Decimal:
    """Parse a quantity of Kubernetes: "500m" -> 0.5. Raises ValueError if it isn't one."""
    match = re.fullmatch(_QUANTITY, quantity)
    if not match:
        raise ValueError(f"{quantity} isn't a quantity")
    return Decimal(match[1]) * _SUFFIXES[match[2] or ""]


def parse_quantity(value: Any) -> Any:
    """Validate ``64``, ``"500m"`` or ``"2Ti"``. Returns text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and re.fullmatch(_QUANTITY, text):
        return text
    raise refuse("TEN-006", f"{value!r} isn't a quantity of Kubernetes", 'write 64, "500m" or "2Ti"')


def parse_resource(value: Any) -> Any:
    """Validate the name of a resource in a quota."""
    if isinstance(value, str) and re.fullmatch(_RESOURCE, value):
        return value
    raise refuse(
        "TEN-006",
        f"{value!r} isn't the name of a resource",
        "write, for example, requests.nvidia.com/gpu, limits.memory or pods",
    )


def parse_prefix(value: Any) -> Any:
    """Validate the prefix of a namespace's name."""
    if value == "" or (isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9-]{0,19}", value)):
        return value
    hint = "write at most 20 lower case letters, digits and '-', starting with a letter, for example user-"
    raise refuse("TEN-004", f"{value!r} isn't a valid prefix for a namespace's name", hint)


def parse_url(value: Any) -> Any:
    """Validate the URL of an LDAP server. What to search for is in other keys."""
    if isinstance(value, str) and re.fullmatch(_URL, value):
        return value
    hint = "write ldaps://ldap.example.org, optionally with a port; bases and filters have their own keys"
    raise refuse("TEN-002", "isn't the URL of an LDAP server", hint)


def parse_filter(value: str) -> str:
    """Validate a search filter with its parentheses (RFC 4515)."""
    if _SPECIAL.search(value):
        raise refuse(
            "TEN-005", f"{value!r} has characters that a search filter can't have here", _ESCAPED.format("RFC 4515")
        )
    depths = list(accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in value))
    if value[:1] == "(" and depths[-1] == 0 and 0 not in depths[:-1]:
        return value
    raise refuse(
        "TEN-005",
        f"{value} isn't a search filter",
        "write it with balanced parentheses, for example (objectClass=person)",
    )


def parse_attribute(value: str) -> str:
    """Validate the name of an attribute (RFC 4512, 1.4)."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", value):
        return value
    raise refuse("TEN-005", f"{value!r} isn't the name of an attribute", "write a name such as uid")


def parse_base(value: str) -> str:
    """Validate a distinguished name roughly; the server does it exactly."""
    if _SPECIAL.search(value):
        raise refuse(
            "TEN-005",
            f"{value!r} has characters that a distinguished name can't have here",
            _ESCAPED.format("RFC 4514"),
        )
    if re.fullmatch(r" *[A-Za-z0-9][A-Za-z0-9.-]* *=[^=]+(, *[A-Za-z0-9.-]+ *=[^=]+)*", value):
        return value
    raise refuse("TEN-005", f"{value!r} isn't a distinguished name", "write, for example, ou=people,dc=example,dc=org")


_EXAMPLE = {"examples": ["64", "500m", "2Ti"]}
Quantity = Annotated[str, BeforeValidator(parse_quantity), WithJsonSchema({"type": ["string", "integer"], **_EXAMPLE})]
Resource = Annotated[str, BeforeValidator(parse_resource), WithJsonSchema({"type": "string"})]
Prefix = Annotated[str, BeforeValidator(parse_prefix), WithJsonSchema({"type": "string"})]
LdapUrl = Annotated[str, BeforeValidator(parse_url), WithJsonSchema({"type": "string"})]
Filter = Annotated[str, AfterValidator(parse_filter)]
Attribute = Annotated[str, AfterValidator(parse_attribute)]
Base = Annotated[str, AfterValidator(parse_base)]


class BindPassword(Model):
    """Where the directory's password is stored, which is never a file of the inventory."""

    secret: Name
    """Name of the secret in the stack's configuration, as in: menagerie secret CLUSTER <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_password(cls, value: Any) -> Any:
        message = "may contain the password itself; it must be a reference to a secret"
        hint = "store the password with ./menagerie secret <cluster> ldap, and write {secret: ldap}"
        return reference_or(refuse("TEN-003", message, hint), value)


class LdapPeople(Model):
    """Which entries are people. The defaults fit inetOrgPerson (RFC 2798)."""

    base: Base
    """Where they are: all below it is searched."""
    filter: Filter = "(objectClass=inetOrgPerson)"
    """Which entries below it are people."""
    left: Filter | None = None
    """Which of these people have left or are locked, for example (nsAccountLock=TRUE). Default: none; entries of people who
    leave are removed."""
    id: Attribute = "uid"
    """Attribute with their user name for the API. It must not change: another name is another person."""
    full_name: Attribute = "cn"
    """Attribute with their full name."""


class LdapTeams(Model):
    """Which entries are teams. The defaults fit groupOfNames (RFC 4519), groupOfUniqueNames and posixGroup (RFC 2307)."""

    base: Base
    """Where they are: all below it is searched."""
    filter: Filter = "(|(objectClass=groupOfNames)(objectClass=groupOfUniqueNames)(objectClass=posixGroup))"
    """Which entries below it are teams."""
    id: Attribute = "cn"
    """Attribute with their name. It must not change: another name is another team."""
    members: tuple[Attribute, ...] = Field(default=("member", "uniqueMember", "memberUid"), strict=False, min_length=1)
    """Attributes with members, as distinguished names or people's ids."""
    owners: tuple[Attribute, ...] = Field(default=("owner",), strict=False)
    """Attributes with owners, in the same forms."""


class Ldap(Model):
    """A directory with LDAP (RFC 4511)."""

    urls: tuple[LdapUrl, ...] = Field(min_length=1, strict=False)
    """URLs of servers: ldaps://host, or ldap://host with start_tls. The first that answers is used."""
    start_tls: bool = False
    """With ldap://: start TLS before anything is sent."""
    allow_plaintext: bool = False
    """Accept that password and answers are sent in clear text, and can be changed on the way."""
    ca: KeyPath | None = None
    """File next to cluster.yaml: PEM of the CAs that sign the servers' certificates. Default: the machine's trusted CAs."""
    bind_dn: Base | None = None
    """Distinguished name to log in as. Default: anonymous."""
    password: BindPassword | None = None
    """Reference to the password of `bind_dn`."""
    timeout: DurationMs = 30_000
    """Time-out for connecting to a server and for each of its answers. All answers together may take ten times as long."""
    page_size: int = Field(default=500, ge=1, le=1000)
    """Entries per answer; Active Directory allows at most 1000."""
    people: LdapPeople
    """Which entries are people."""
    teams: LdapTeams
    """Which entries are teams."""


class DirectorySource(Model):
    """Where people and teams are listed: exactly one of the two."""

    file: FilePath | None = None
    """YAML file next to cluster.yaml."""
    ldap: Ldap | None = None
    """Directory server."""


class ContainerLimits(Model):
    """Defaults and maximum for one container: resource -> quantity."""

    default: dict[Resource, Quantity] = Field(default={})
    """Limit of a container without one."""
    default_request: dict[Resource, Quantity] = Field(default={})
    """Request of a container without one. Default: its limit."""
    max: dict[Resource, Quantity] = Field(default={})
    """Largest limit of a container."""


class PodSecurity(StrEnum):
    """Levels of Kubernetes' Pod Security Standards."""

    RESTRICTED = "restricted"
    BASELINE = "baseline"
    PRIVILEGED = "privileged"
    """No restrictions: everybody who can create a pod controls its host."""


class Allowance(Model):
    """What a namespace may have."""

    quota: dict[Resource, Quantity] = Field(default={})
    """Quota as in a ResourceQuota, for example requests.nvidia.com/gpu: 64. Counts left out have defaults
    (docs/how-to/teams.md); everything else left out has no limit."""
    limits: ContainerLimits = ContainerLimits()
    """Defaults and maximum for its containers."""
    pod_security: PodSecurity | None = Field(default=None, strict=False)
    """Which pods are admitted. Default: tenancy.pod_security."""


class PeopleAllowance(Allowance):
    """What a person's namespace may have."""

    prefix: Prefix = "user-"
    """Prefix of the name of a person's namespace."""


class TeamsAllowance(Allowance):
    """What a team's namespace may have."""

    prefix: Prefix = "team-"
    """Prefix of the name of a team's namespace."""
    only: dict[Title, Allowance] = Field(default={})
    """Name of a team in the directory -> its own settings. They replace the common ones, quotas resource by resource."""


class Leavers(StrEnum):
    """What happens to workloads in the namespace of somebody who left. Nothing is ever deleted."""

    KEEP = "keep"
    """They keep running; nothing new starts."""
    STOP = "stop"
    """They are scaled to zero, and CronJobs and Jobs suspended. If the person returns, so does the former state."""


class Tenancy(Model):
    """A namespace for each person and each team, kept up to date with a directory."""

    directory: DirectorySource
    """Where people and teams are listed."""
    people: PeopleAllowance = PeopleAllowance()
    """What a person's namespace may have."""
    teams: TeamsAllowance = TeamsAllowance()
    """What a team's namespace may have."""
    pod_security: PodSecurity = Field(default=PodSecurity.BASELINE, strict=False)
    """Which pods are admitted. With baseline, as in the whole cluster, violations of restricted cause warnings and audit
    entries."""
    leavers: Leavers = Field(default=Leavers.KEEP, strict=False)
    """keep or stop: what happens to workloads in the namespace of somebody who left."""
    refuse_loss: Share = "50%"
    """Number or share of people, teams or memberships. If that many disappear at once, the directory's answer is refused."""
    allocations: tuple[Allocation, ...] = Field(default=(), strict=False)
    """Which team has how many hosts of which pool. If there are too few, earlier entries come first. Default: everybody
    shares all hosts."""
    borrowing: Borrowing = Borrowing()
    """Limits for work that borrows a team's idle hosts."""
    overcommit: int = Field(default=1, ge=1, le=1_000_000)
    """How many times etcd.main.quota all namespaces together may use if every object has the largest size that etcd accepts.
    `check` warns above it."""
    controllers: Name | None = None
    """Pool whose hosts run Menagerie's controllers. Root on one of them has the controllers' rights. Default: a pool with two
    hosts and without GPUs, preferably the one of storage.controllers."""
    user_prefix: str = Field(default="", pattern=r"^([a-z0-9:_/.][a-z0-9:_/.-]*)?$", max_length=40)
    """Prefix of user names in the API before people's ids, for example oidc: with --oidc-username-prefix=oidc:."""


def secret_names(tenancy: Tenancy | None) -> tuple[str, ...]:
    """Return the names of the secrets that the stack's configuration must have for the directory."""
    ldap = tenancy.directory.ldap if tenancy else None
    return (ldap.password.secret,) if ldap and ldap.password else ()
