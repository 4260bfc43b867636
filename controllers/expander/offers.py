"""What cluster-autoscaler sends, as offers: bytes in, `Offer` and `Waiting` out, with what the spec knows of the pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.catalogue import CLOUDS
from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from controllers import prices
from controllers.autoscaler.amounts import requests_of, there
from controllers.autoscaler.asking import MILLION
from controllers.autoscaler.keys import MACHINE_LABEL
from controllers.expander import wire
from controllers.expander.choose import Offer, Waiting
from controllers.planner.resources import Resources


@dataclass(frozen=True)
class Priced:
    """price: millionths of a dollar an hour, None where nobody knows it."""

    price: int | None
    spot: bool = False


PriceOf = Callable[[str, str], Priced]
"""(pool, machine type) of a node -> its price; "" for a label that the node does not have."""


def prices_of(cluster: Cluster) -> PriceOf:
    """By the pool of the spec: the operator's own prices, else the list's. Of other nodes by their machine type in the cluster's region."""
    plane = cluster.spec.control_plane
    own = cluster.spec.autoscaler.prices if cluster.spec.autoscaler else {}

    def of(pool: str, machine: str) -> Priced:
        known = cluster.spec.pools.get(pool)
        if known is not None and known.site is None:
            dollars = prices.of_pool(cluster, pool, own)
        else:
            listed = prices.of(plane.cloud, plane.region, machine) if plane.cloud in CLOUDS else None
            dollars = listed.hour if listed else None
        return Priced(None if dollars is None else round(dollars * MILLION), bool(known and known.spot))

    return of


def read(request: Any, price_of: PriceOf) -> tuple[list[Offer], dict[str, Waiting]]:
    """The offers of a `wire.Request`, and the pods that are in them. DecodeError, ValueError for what can't be read."""
    pods: dict[str, Waiting] = {}
    offers = []
    seen: dict[bytes, str] = {}
    for option in request.options:
        keys = []
        for data in option.podBytes:
            if data not in seen:
                seen[data] = _add(data, pods)
            keys.append(seen[data])
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
    room = Resources.of(there(wire.quantities(node.status.allocatable)))
    return Offer(option.nodeGroupId, option.nodeCount, priced.price, room, pods, priced.spot)
