"""How many objects a namespace may have: without counts, one person's ConfigMaps fill etcd main, and then nobody writes anything.

Counts bound what lies in etcd. What one object is rewritten with lies there too, until the API server compacts it away five minutes later
(kube-apiserver, --etcd-compaction-interval).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from cluster.tenancy import Allowance, Tenancy, amount

LARGEST = 3 * 2**19
"""Bytes. etcd refuses a larger request (--max-request-bytes, 1.5 MiB), whatever the kind: annotations, owners and finalizers add up."""

# What Kubernetes' role `edit` lets people make in 1.36 (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), and its Pods' and Jobs' own.
# Not Events: they lie in another etcd, and go after an hour.
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
    # A Deployment keeps ten of former revisions.
    "count/replicasets.apps": 110,
    "count/resourceclaims.resource.k8s.io": 50,
    "count/secrets": 50,
    "count/services": 20,
}
"""570 objects: 0.8 GiB of the largest, a tenth of an etcd of 8 GiB."""
TEAMS: Mapping[str, int] = {
    **dict.fromkeys(_FEW, 30),
    "count/configmaps": 200,
    "count/jobs.batch": 300,
    "count/persistentvolumeclaims": 100,
    "count/pods": 1500,
    "count/replicasets.apps": 330,
    "count/resourceclaims.resource.k8s.io": 300,
    # Owners of teams give rights.
    "count/rolebindings.rbac.authorization.k8s.io": 30,
    "count/secrets": 200,
    "count/services": 100,
}
"""3,420 objects: 5.0 GiB of the largest."""
OTHERS = {"people": 20, "teams": 100}
"""Of each kind that a CRD adds to the role `edit`."""

_SHORT = ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "secrets", "services")
_COUNT = "count/"


def people(own: Allowance, more: Iterable[str] = ()) -> dict[str, str]:
    """The quota of a person's namespace. more: further kinds, as quotas count them."""
    return _quota(PEOPLE, OTHERS["people"], own, more)


def teams(own: Allowance, more: Iterable[str] = ()) -> dict[str, str]:
    """The quota of a team's."""
    return _quota(TEAMS, OTHERS["teams"], own, more)


def _quota(counts: Mapping[str, int], other: int, own: Allowance, more: Iterable[str]) -> dict[str, str]:
    """What the spec says goes before; where it has the short name of a count, that is the count."""
    said = own.quota
    default = {**dict.fromkeys(more, other), **counts}
    if "pods" in said:
        # It counts pods that have not ended; the others lie in etcd too.
        default["count/pods"] = max(default["count/pods"], 2 * int(amount(said["pods"])))
    short = {f"{_COUNT}{name}" for name in _SHORT if name in said}
    return {**{name: str(number) for name, number in default.items() if name not in short}, **said}


def objects(quota: Mapping[str, str]) -> int:
    """How many objects a quota lets a namespace have, of all the kinds that it counts."""
    counted = (value for name, value in quota.items() if name.startswith(_COUNT) or name in _SHORT)
    return int(sum((amount(value) for value in counted), Decimal(0)))


def team(settings: Tenancy, name: str) -> Allowance:
    """What a team may have: quotas by resource, the rest as a whole."""
    only = settings.teams.only.get(name, Allowance())
    said = {key: getattr(only, key) for key in only.model_fields_set - {"quota"}}
    return settings.teams.model_copy(update={**said, "quota": {**settings.teams.quota, **only.quota}})


def reckoned(number: int) -> str:
    """``3,420 objects, 5.0 GiB were each as large as etcd takes``."""
    return f"{number:,} objects, {gibibytes(number * LARGEST)} were each as large as etcd takes, {LARGEST / 2**20} MiB"


def gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


def times(number: int, room: int) -> int:
    """How many times what etcd holds so many objects would be, rounded up."""
    return -(-number * LARGEST // room)
