"""Looks at a cluster once, for people who ask about its capacity. Changes nothing, also where no pool grows automatically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.autoscaler import Autoscaler
from cluster.spec import Cluster
from controllers.autoscaler.actuator import Actuator
from controllers.autoscaler.groups import GroupError, Groups
from controllers.autoscaler.look import Fixed, read_world
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.world import World
from operations.breaker import Limits
from operations.repair.look import CheckInputs, limits_of

if TYPE_CHECKING:
    from kubernetes import client

    from clients.access import Access


@dataclass(frozen=True)
class Observed:
    """A cluster at one moment, with what the autoscaler remembers. cluster: its name. limits: of the shared brake."""

    cluster: str
    world: World
    memory: Memory
    settings: Autoscaler
    limits: Limits


def observe(cluster: Cluster, access: Access) -> Observed:
    """Read the cluster now. Errors: raises kubernetes' ApiException and urllib3's HTTPError if the API doesn't answer."""
    from controllers.autoscaler import choose  # noqa: PLC0415 - image: controllers have no login in a cloud

    try:
        groups = choose.groups_of(cluster, access.api) if cluster.spec.autoscaler else Fixed()
    except GroupError:
        groups = Fixed()
    return observe_with(cluster, access.api, groups)


def observe_with(cluster: Cluster, api: Callable[[], client.ApiClient], groups: Groups) -> Observed:
    """Read the cluster now, with these groups of machines. Errors: as `observe`."""
    settings = cluster.spec.autoscaler or Autoscaler()
    around = CheckInputs(cluster, api, lambda: "", limits_of(cluster))
    memory = Actuator(api, groups, around.limits).recall()
    return Observed(cluster.name, read_world(around, groups, settings, memory), memory, settings, around.limits)
