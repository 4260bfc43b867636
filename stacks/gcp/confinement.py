"""Conditions that confine a grant to the machines of the cluster's pools, recognised by name. Pure: creates no resources.

Google accepts twelve logical operators (`&&`, `||`, `!`) in a condition, and twenty conditional grants of one role to one
member on one resource ("IAM quotas and limits"). Each pool is a name of its own: a prefix of all pools of a cluster, such as
`gibbon-`, would also be one of cluster `gibbon-two`. So many pools become several grants, whose rights add up.
`cluster.check.limits` refuses more pools than that allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cluster.spec import Cluster
from stacks.gcp.tags import base_name, condition_title, generated

MOST_OPERATORS = 12


def parts(cluster: Cluster, own: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (what a resource's name ends with, the pools that one condition names).

    own: logical operators of the condition, without those between the pools' names.
    """
    pools = cluster.spec.region_pools
    for number, named in enumerate(_slices(tuple(pools), MOST_OPERATORS - own + 1), 1):
        yield (f"-{number}" if number > 1 else ""), named


def of_machines(cluster: Cluster, pools: Iterable[str]) -> str:
    """Return the expression that is true for machines of these pools ("Resource attributes in IAM Conditions")."""
    return " || ".join(
        f'resource.name.extract("/instances/{{name}}").startsWith("{base_name(cluster, name)}-")' for name in pools
    )


def name_of(cluster: Cluster, what: str, ending: str) -> str:
    """Return the name in the program of a grant. ending: see `parts`."""
    return generated(cluster, f"{what}{ending}")


def title(what: str, pools: Sequence[str]) -> str:
    """Return a title that differs for other pools: a replacement exists next to the grant it replaces, distinguished by title."""
    return condition_title(f"{what} of {', '.join(pools)}")


def _slices(of: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    return [of[start : start + size] for start in range(0, len(of), size)]
