"""How many objects a namespace may have. Without limits, one person's ConfigMaps can fill etcd main and block all writes.

Counts limit the objects in etcd. Former versions of an object are there too, until the API server compacts them away
after five minutes (kube-apiserver, --etcd-compaction-interval).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from cluster.tenancy import Allowance, Tenancy, amount

LARGEST = 3 * 2**19
"""Size of the largest object, in bytes. etcd refuses larger requests (--max-request-bytes, 1.5 MiB). Any kind can reach it:
annotations, owners and finalizers add up."""

# What Kubernetes' role `edit` may create in 1.36 (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), and what its Pods and
# Jobs create. Not Events: they are in another etcd, and expire after an hour.
_FEW = (
    "count/cronjobs.batch",
    "count/daemonsets.apps",
    "count/deployments.apps",
    "count/horizontalpodautoscalers.autoscaling",
    "count/ingresses.networking.k8s.io",
    "count/leases.coordination.k8s.io",
    "count/networkpolicies.networking.k8s.io",
    "count/poddisruptionbudgets.policy",
    "count/replicationcontrollers",
    "count/resourceclaimtemplates.resource.k8s.io",
    "count/serviceaccounts",
    "count/statefulsets.apps",
)
PEOPLE: Mapping[str, int] = {
    **dict.fromkeys(_FEW, 10),
    "count/configmaps": 50,
    "count/jobs.batch": 50,
    "count/persistentvolumeclaims": 20,
    "count/pods": 100,
    # A Deployment keeps ten former revisions.
    "count/replicasets.apps": 110,
    "count/resourceclaims.resource.k8s.io": 50,
    "count/secrets": 50,
    "count/services": 20,
}
"""570 objects: 0.8 GiB at the largest size, a tenth of an etcd of 8 GiB."""
TEAMS: Mapping[str, int] = {
    **dict.fromkeys(_FEW, 30),
    "count/configmaps": 200,
    "count/jobs.batch": 300,
    "count/persistentvolumeclaims": 100,
    "count/pods": 1500,
    "count/replicasets.apps": 330,
    "count/resourceclaims.resource.k8s.io": 300,
    # Owners of teams grant rights.
    "count/rolebindings.rbac.authorization.k8s.io": 30,
    "count/secrets": 200,
    "count/services": 100,
}
"""3,420 objects: 5.0 GiB at the largest size."""
OTHERS = {"people": 20, "teams": 100}
"""Number of objects of each kind that a CRD adds to the role `edit`."""

_SHORT = ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "secrets", "services")
_COUNT = "count/"


def people(own: Allowance, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the quota of a person's namespace. more: additional kinds, in the form that quotas count them."""
    return _quota(PEOPLE, OTHERS["people"], own, more)


def teams(own: Allowance, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the quota of a team's namespace."""
    return _quota(TEAMS, OTHERS["teams"], own, more)


def _quota(counts: Mapping[str, int], other: int, own: Allowance, more: Iterable[str]) -> dict[str, str]:
    """Merge default counts with the spec's quota, which takes precedence, also under a count's short name."""
    quota = own.quota
    default = {**dict.fromkeys(more, other), **counts}
    if "pods" in quota:
        # The quota `pods` doesn't count terminated pods, which are still in etcd.
        default["count/pods"] = max(default["count/pods"], 2 * int(amount(quota["pods"])))
    short = {f"{_COUNT}{name}" for name in _SHORT if name in quota}
    return {**{name: str(number) for name, number in default.items() if name not in short}, **quota}


def objects(quota: Mapping[str, str]) -> int:
    """Return how many objects a quota allows in a namespace, over all kinds that it counts."""
    counted = (value for name, value in quota.items() if name.startswith(_COUNT) or name in _SHORT)
    return int(sum((amount(value) for value in counted), Decimal(0)))


def team(settings: Tenancy, name: str) -> Allowance:
    """Return a team's allowance: its own settings over the common ones. Quotas are merged by resource."""
    only = settings.teams.only.get(name, Allowance())
    changes = {key: getattr(only, key) for key in only.model_fields_set - {"quota"}}
    return settings.teams.model_copy(update={**changes, "quota": {**settings.teams.quota, **only.quota}})


def size_estimate(number: int) -> str:
    """Return ``3,420 objects, up to 5.0 GiB at etcd's limit of 1.5 MiB each``."""
    return f"{number:,} objects, up to {gibibytes(number * LARGEST)} at etcd's limit of {LARGEST / 2**20} MiB each"


def gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


def times(number: int, room: int) -> int:
    """Return how many times the room in etcd so many objects of the largest size would take, rounded up."""
    return -(-number * LARGEST // room)
