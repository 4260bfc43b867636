"""Names, labels and the provider object of the cluster.

A project holds more than one cluster, so every name begins with the cluster's. Where a replacement stands beside what it
replaces, names are generated: the provider adds seven digits. What costs money, or is found again by its name, keeps
one: of that, a run that was cut short leaves no second behind, for the next one is told that it exists. What else it
leaves serves nobody and costs nothing: templates, health checks, backend services, policies, keys.
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.catalogue import of
from cluster.spec import Cloud, Cluster
from stacks.names import DIGITS, hashed, short

LONGEST = of(Cloud.GCP).names["resource"].max
_GENERATED = 8
"""A hyphen and digits that the provider adds to a name."""
_LONGEST_BASE, _LONGEST_ACCOUNT, _LONGEST_ENDPOINT, _LONGEST_ROLE = 58, 30, 20, 64
"""Of `baseInstanceName` ("InstanceGroupManager", Compute Engine API), of a service account's id ("ServiceAccount", IAM
API), of an endpoint for Google's APIs ("About accessing Google APIs through endpoints"), of a role ("Role", IAM API)."""

_LONGEST_TITLE = 100
"""Of a role ("Role", IAM API), and kept to for conditions of grants too."""


def provider(cluster: Cluster) -> gcp.Provider:
    """Google Cloud in the cluster's region. The project is gcp:project, else of the environment, as credentials are;
    a provider object reads no configuration by itself."""
    return gcp.Provider(
        f"{cluster.name}-gcp",
        project=pulumi.Config("gcp").get("project"),
        region=cluster.spec.control_plane.region,
        default_labels=of_cluster(cluster),
    )


def of_cluster(cluster: Cluster) -> dict[str, str]:
    """On everything. The provider's reach what it makes itself, and not the disks that a template makes."""
    return {"menagerie": "true", "cluster": cluster.name}


def labels(role: str) -> dict[str, str]:
    """Beside those of the provider."""
    return {"role": role}


def named(cluster: Cluster, *parts: str) -> str:
    """A name that stays: a letter first, then letters, digits and hyphens (RFC 1035)."""
    return _fitted(cluster, parts, LONGEST)


def generated(cluster: Cluster, *parts: str) -> str:
    """A name in the program with room for what the provider adds."""
    return _fitted(cluster, parts, LONGEST - _GENERATED)


def base_name(cluster: Cluster, *parts: str) -> str:
    """What the names of a group's machines begin with; Google adds a hyphen and four characters."""
    return _fitted(cluster, parts, _LONGEST_BASE)


def rule_name(text: str) -> str:
    """Of a rule in a policy that is the cluster's."""
    return short(text, LONGEST)


def condition_title(text: str) -> str:
    """Of a condition of a grant."""
    return short(text, _LONGEST_TITLE)


def account_id(cluster: Cluster, reader: str) -> str:
    """The identity of a reader."""
    return _fitted(cluster, (reader,), _LONGEST_ACCOUNT)


def endpoint_name(cluster: Cluster) -> str:
    """Letters and digits only, for it becomes part of DNS names; unlike those of clusters with similar names."""
    letters = "".join(filter(str.isalnum, f"m{cluster.name}"))
    return letters[: _LONGEST_ENDPOINT - DIGITS] + hashed(cluster.name)


def role_id(cluster: str, role: str) -> str:
    """Letters, digits and underscores. cluster: its name."""
    return short(f"menagerie_{cluster}_{role}", _LONGEST_ROLE).replace("-", "_")


def bucket_name(cluster: Cluster, purpose: str, project: str) -> str:
    """Names of buckets are everybody's, so the project's hash is in it; none may begin with goog or hold google."""
    tail = f"-{purpose}-{hashed(f'{project}/{cluster.name}')}"
    own = cluster.name[: LONGEST - len(tail)].rstrip("-")
    own = "menagerie" if own.startswith("goog") or "google" in own else own
    return f"{own}{tail}"


def _fitted(cluster: Cluster, parts: tuple[str, ...], longest: int) -> str:
    """The cluster's name is what is shortened first: the rest is easier told apart by people."""
    tail = "-".join(("", *parts))
    own = cluster.name if cluster.name[0].isalpha() else f"m{cluster.name}"
    room = longest - len(tail)
    return short(own, room) + tail if room > 2 * DIGITS else short(own + tail, longest)
