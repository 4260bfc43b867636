"""Converts cluster-autoscaler's request to `Offer` and `Waiting`, with the spec's data about pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.catalogue import CLOUDS
from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from controllers import prices
from controllers.autoscaler.amounts import capacity_of, requests_of
from controllers.autoscaler.keys import MACHINE_LABEL
from controllers.autoscaler.pod_requests import MILLION
from controllers.expander import wire
from controllers.expander.choose import Offer, Waiting
from controllers.planner.resources import Resources


@dataclass(frozen=True)
class Priced:
    """A node's price. price: millionths of a dollar an hour, None if unknown."""

    price: int | None
    spot: bool = False


PriceOf = Callable[[str, str], Priced]
"""(pool, machine type) of a node -> its price; "" for a label that the node lacks."""


def prices_of(cluster: Cluster) -> PriceOf:
    """Return prices of nodes. Pools of the spec: the operator's price, else the list price. Others: the list price of their machine type."""
    plane = cluster.spec.control_plane
    own = cluster.spec.autoscaler.prices if cluster.spec.autoscaler else {}

    def of(pool: str, machine: str) -> Priced:
        spec_pool = cluster.spec.pools.get(pool)
        if spec_pool is not None and spec_pool.site is None:
            dollars = prices.of_pool(cluster, pool, own)
        else:
            listed = prices.of(plane.cloud, plane.region, machine) if plane.cloud in CLOUDS else None
            dollars = listed.hour if listed else None
        return Priced(None if dollars is None else round(dollars * MILLION), bool(spec_pool and spec_pool.spot))

    return of


def read(request: Any, price_of: PriceOf) -> tuple[list[Offer], dict[str, Waiting]]:
    """Return the offers of a `wire.Request`, and the pods in them. Errors: raises DecodeError or ValueError for invalid data."""
    pods: dict[str, Waiting] = {}
    offers = []
    key_of: dict[bytes, str] = {}
    for option in request.options:
        keys = []
        for data in option.podBytes:
            if data not in key_of:
                key_of[data] = _add(data, pods)
            keys.append(key_of[data])
        offers.append(_offer(option, request.nodeBytesMap.get(option.nodeGroupId, b""), frozenset(keys), price_of))
    return offers, pods


def _add(data: bytes, pods: dict[str, Waiting]) -> str:
    pod = wire.Pod.FromString(data)
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    pods[key] = Waiting(Resources.of(requests_of(wire.spec_of(pod))), pod.metadata.creationTimestamp.seconds)
    return key


def _offer(option: Any, data: bytes, pods: frozenset[str], price_of: PriceOf) -> Offer:
    node = wire.Node.FromString(data)
    labels = node.metadata.labels
    priced = price_of(labels.get(POOL_LABEL, ""), labels.get(MACHINE_LABEL, ""))
    room = Resources.of(capacity_of(wire.quantities(node.status.allocatable)))
    return Offer(option.nodeGroupId, option.nodeCount, priced.price, room, pods, priced.spot)
