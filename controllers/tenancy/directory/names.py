"""The namespace of each person and team.

The id in lower case, letters without their accents, and '-' for what a name of a namespace can't have; before it the prefix
of its kind. Nothing is cut and nothing is numbered, so a name never depends on who else there is: where two would have
one, both are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster.tenancy import Tenancy
from controllers.tenancy.directory.model import Kind, Tenant

LONGEST = 63
"""RFC 1123: of a label. A namespace is one."""
RESERVED = frozenset({"default", "csi", "rook-ceph", "menagerie", "kube", "lost-found"})
"""Kubernetes' and ours, and what mirrors of namespaces to folders can't have."""
_RESERVED_BEGINNINGS = ("kube-", "menagerie-", "openshift-")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")


@dataclass(frozen=True)
class Trouble:
    """A name that can't be. tenants: whose; all of them are named in the message."""

    code: str
    tenants: tuple[Tenant, ...]
    message: str
    hint: str


def slug(name: str) -> str:
    """``"José.Díaz"`` -> ``"jose-diaz"``; "" where nothing of it is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]", "-", plain).strip("-")


def namespace(tenant: Tenant, settings: Tenancy) -> str:
    """The name of its namespace, whether or not it may be one."""
    prefix = settings.people.prefix if tenant.kind is Kind.PERSON else settings.teams.prefix
    return f"{prefix}{slug(tenant.name)}"


def assign(tenants: Iterable[Tenant], settings: Tenancy) -> tuple[Mapping[Tenant, str], tuple[Trouble, ...]]:
    """(tenant -> namespace, every name that can't be). Only without trouble is every tenant in the mapping."""
    found: dict[Tenant, str] = {}
    troubles: list[Trouble] = []
    sharing: dict[str, list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        name = namespace(tenant, settings)
        if trouble := _alone(tenant, name):
            troubles.append(trouble)
        else:
            found[tenant] = name
            sharing[name].append(tenant)
    for name, own in sharing.items():
        if len(own) > 1:
            text = f"{' and '.join(map(str, own))} would share the namespace {name}"
            troubles.append(Trouble("TEN-011", tuple(own), text, "give one of them another name in the directory"))
    return found, tuple(troubles)


def _alone(tenant: Tenant, name: str) -> Trouble | None:
    """What is wrong with one name, whoever else there is."""
    own = (tenant,)
    # A binding of system:… would be one of Kubernetes' own users.
    if tenant.kind is Kind.PERSON and not _ID.fullmatch(tenant.name):
        text = f"{tenant} is no name of a user: letters, digits, '.', '_', '@', '+' and '-', a letter or digit first"
        return Trouble("TEN-010", own, text, "give them another id, or filter the entry out")
    if not slug(tenant.name):
        return Trouble("TEN-010", own, f"{tenant} has neither a letter nor a digit for a namespace", "rename it")
    if len(name) > LONGEST:
        text = f"{tenant} would have the namespace {name}, of {len(name)} characters; {LONGEST} is the most"
        return Trouble("TEN-010", own, text, f"shorten it by {len(name) - LONGEST}, or its prefix in the spec")
    if name in RESERVED or name.startswith(_RESERVED_BEGINNINGS):
        text = f"{tenant} would have the namespace {name}, which Kubernetes or Menagerie keeps for itself"
        kind = "people" if tenant.kind is Kind.PERSON else "teams"
        return Trouble("TEN-010", own, text, f"rename it, or write tenancy.{kind}.prefix")
    return None
