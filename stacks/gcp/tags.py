"""Names and labels of the cluster's resources. Pure: creates none.

A project may hold several clusters, so every name starts with the cluster's. Names are generated if a replacement exists
next to the resource it replaces: the provider appends seven digits. Resources that cost money, or are looked up by name,
have fixed names: an interrupted run leaves no duplicate of them, because the next run gets an error that the name exists.
Other leftovers are unused and cost nothing: templates, health checks, backend services, policies, keys.
"""

from __future__ import annotations

from cluster.catalogue import of
from cluster.spec import Cloud, Cluster
from stacks.names import DIGITS, hashed, short

LONGEST = of(Cloud.GCP).names["resource"].max
_GENERATED = 8
"""A hyphen and digits that the provider appends to a name."""
_LONGEST_BASE, _LONGEST_ACCOUNT, _LONGEST_ENDPOINT, _LONGEST_ROLE = 58, 30, 20, 64
"""Of `baseInstanceName` ("InstanceGroupManager", Compute Engine API), of a service account's ID ("ServiceAccount", IAM
API), of an endpoint for Google's APIs ("About accessing Google APIs through endpoints"), of a role ("Role", IAM API)."""

_LONGEST_TITLE = 100
"""Of a role ("Role", IAM API), and also used for conditions of grants."""


def labels(role: str) -> dict[str, str]:
    """Return labels in addition to the provider's."""
    return {"role": role}


def named(cluster: Cluster, *parts: str) -> str:
    """Return a fixed name: a letter first, then letters, digits and hyphens (RFC 1035)."""
    return _fitted(cluster, parts, LONGEST)


def generated(cluster: Cluster, *parts: str) -> str:
    """Return a name in the program that leaves room for the provider's suffix."""
    return _fitted(cluster, parts, LONGEST - _GENERATED)


def base_name(cluster: Cluster, *parts: str) -> str:
    """Return the prefix of a group's machine names; Google appends a hyphen and four characters."""
    return _fitted(cluster, parts, _LONGEST_BASE)


def rule_name(text: str) -> str:
    """Return the name of a rule in a policy that belongs to the cluster."""
    return short(text, LONGEST)


def condition_title(text: str) -> str:
    """Return the title of a grant's condition."""
    return short(text, _LONGEST_TITLE)


def account_id(cluster: Cluster, reader: str) -> str:
    """Return the account ID of a reader's identity."""
    return _fitted(cluster, (reader,), _LONGEST_ACCOUNT)


def endpoint_name(cluster: Cluster) -> str:
    """Return a name of letters and digits, because it becomes part of DNS names. Differs for clusters with similar names."""
    letters = "".join(filter(str.isalnum, f"m{cluster.name}"))
    return letters[: _LONGEST_ENDPOINT - DIGITS] + hashed(cluster.name)


def role_id(cluster: str, role: str) -> str:
    """Return a role's ID: letters, digits and underscores. cluster: its name."""
    return short(f"menagerie_{cluster}_{role}", _LONGEST_ROLE).replace("-", "_")


def bucket_name(cluster: str, purpose: str, project: str) -> str:
    """Return a bucket's name. Bucket names are global, so it includes the project's hash; none may start with goog or contain google."""
    tail = f"-{purpose}-{hashed(f'{project}/{cluster}')}"
    own = cluster[: LONGEST - len(tail)].rstrip("-")
    own = "menagerie" if own.startswith("goog") or "google" in own else own
    return f"{own}{tail}"


def _fitted(cluster: Cluster, parts: tuple[str, ...], longest: int) -> str:
    """Join a name, shortening the cluster's name first: people distinguish resources by the rest."""
    tail = "-".join(("", *parts))
    own = cluster.name if cluster.name[0].isalpha() else f"m{cluster.name}"
    room = longest - len(tail)
    return short(own, room) + tail if room > 2 * DIGITS else short(own + tail, longest)
