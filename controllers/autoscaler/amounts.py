"""Converts Kubernetes' quantities to the planner's whole numbers. Requests are rounded up, capacities down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cache
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from controllers.planner.resources import CPU, MEMORY, STORAGE

_MIB = 2**20


@cache
def _number(name: str, quantity: str, rounding: str) -> int:
    amount: Decimal = parse_quantity(quantity)
    amount = amount * 1000 if name == CPU else amount / _MIB if name in (MEMORY, STORAGE) else amount
    return int(amount.to_integral_value(rounding))


def capacity_of(allocatable: Mapping[str, str]) -> dict[str, int]:
    """Convert a node's allocatable: ``{"cpu": "3920m", "memory": "15Gi"}`` -> ``{"cpu": 3920, "memory": 15360}``."""
    return {name: _number(name, str(amount), ROUND_FLOOR) for name, amount in allocatable.items()}


def requests_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what a pod takes of its host, as the scheduler counts it.

    It is the larger of all containers with the sidecars, and of each init container with the sidecars before it, plus the overhead.
    Requests of the pod as a whole take precedence. See kubernetes.io, "Init Containers", "Sidecar Containers", "Pod Overhead".
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in spec.get("initContainers") or ():
        own = _requests(each)
        if each.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, own))
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum((sidecars, own)))
    steady = _sum([sidecars, *(_requests(each) for each in spec.get("containers") or ())])
    total = _most(steady, peak) | _requests(spec)
    overhead = {
        name: _number(name, str(amount), ROUND_CEILING) for name, amount in (spec.get("overhead") or {}).items()
    }
    return _sum((total, overhead))


def _requests(document: Mapping[str, Any]) -> dict[str, int]:
    requests = (document.get("resources") or {}).get("requests") or {}
    return {name: _number(name, str(amount), ROUND_CEILING) for name, amount in requests.items()}


def _sum(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in many:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}
