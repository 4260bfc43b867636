"""The name of each person's and team's namespace.

It is the prefix of the kind, then the id in lower case: letters without accents, and '-' for characters that a namespace's name
can't contain. Names are neither truncated nor numbered, so a name never depends on other tenants. If two tenants would get the
same name, both are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster.tenancy import Tenancy
from controllers.tenancy.directory.model import Tenant, TenantKind

LONGEST = 63
"""Length of an RFC 1123 label, which a namespace's name is."""
RESERVED = frozenset({"default", "csi", "rook-ceph", "menagerie", "kube", "lost-found"})
"""Names of Kubernetes and of Menagerie, and names that can't be folders where namespaces are mirrored to folders."""
_RESERVED_BEGINNINGS = ("kube-", "menagerie-", "openshift-")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")


@dataclass(frozen=True)
class Trouble:
    """A name that is refused. tenants: whose it is; the message names all of them."""

    code: str
    tenants: tuple[Tenant, ...]
    message: str
    hint: str


def slug(name: str) -> str:
    """``"José.Díaz"`` -> ``"jose-diaz"``; "" if nothing is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]", "-", plain).strip("-")


def namespace(tenant: Tenant, settings: Tenancy) -> str:
    """Return the name of the tenant's namespace, valid or not."""
    prefix = settings.people.prefix if tenant.kind is TenantKind.PERSON else settings.teams.prefix
    return f"{prefix}{slug(tenant.name)}"


def assign(tenants: Iterable[Tenant], settings: Tenancy) -> tuple[Mapping[Tenant, str], tuple[Trouble, ...]]:
    """Return (tenant -> namespace, refused names). If names are refused, the mapping is incomplete."""
    names: dict[Tenant, str] = {}
    troubles: list[Trouble] = []
    sharing: dict[str, list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        name = namespace(tenant, settings)
        if trouble := _alone(tenant, name):
            troubles.append(trouble)
        else:
            names[tenant] = name
            sharing[name].append(tenant)
    for name, own in sharing.items():
        if len(own) > 1:
            text = f"{' and '.join(map(str, own))} would share the namespace {name}"
            troubles.append(Trouble("TEN-011", tuple(own), text, "give one of them another name in the directory"))
    return names, tuple(troubles)


def _alone(tenant: Tenant, name: str) -> Trouble | None:
    """Return what is wrong with one name, regardless of other tenants."""
    own = (tenant,)
    # A binding to system:… would bind one of Kubernetes' own users.
    if tenant.kind is TenantKind.PERSON and not _ID.fullmatch(tenant.name):
        text = f"{tenant} is not a valid user name: use letters, digits, '.', '_', '@', '+' and '-', with a letter or digit first"
        return Trouble("TEN-010", own, text, "give them another id, or filter the entry out")
    if not slug(tenant.name):
        return Trouble(
            "TEN-010", own, f"{tenant} has neither a letter nor a digit for the namespace's name", "rename it"
        )
    if len(name) > LONGEST:
        text = (
            f"{tenant} would have the namespace {name}, which has {len(name)} characters; at most {LONGEST} are allowed"
        )
        return Trouble("TEN-010", own, text, f"shorten it by {len(name) - LONGEST}, or its prefix in the spec")
    if name in RESERVED or name.startswith(_RESERVED_BEGINNINGS):
        text = f"{tenant} would have the namespace {name}, which is reserved for Kubernetes or Menagerie"
        kind = "people" if tenant.kind is TenantKind.PERSON else "teams"
        return Trouble("TEN-010", own, text, f"rename it, or set tenancy.{kind}.prefix")
    return None
