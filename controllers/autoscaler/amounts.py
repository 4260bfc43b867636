"""Kubernetes' quantities as the planner's whole numbers. What is asked for is rounded up, what there is rounded down."""

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


def there(allocatable: Mapping[str, str]) -> dict[str, int]:
    """A node's allocatable: ``{"cpu": "3920m", "memory": "15Gi"}`` -> ``{"cpu": 3920, "memory": 15360}``."""
    return {name: _number(name, str(amount), ROUND_FLOOR) for name, amount in allocatable.items()}


def requests_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """What a pod takes of its host, as the scheduler counts it.

    kubernetes.io, "Init Containers", "Sidecar Containers", "Pod Overhead": the larger of all containers with the sidecars, and
    of each init container with the sidecars before it; the overhead comes on top. What the pod asks for as a whole goes first.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in spec.get("initContainers") or ():
        own = _asked(each)
        if each.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, own))
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum((sidecars, own)))
    steady = _sum([sidecars, *(_asked(each) for each in spec.get("containers") or ())])
    total = _most(steady, peak) | _asked(spec)
    overhead = {
        name: _number(name, str(amount), ROUND_CEILING) for name, amount in (spec.get("overhead") or {}).items()
    }
    return _sum((total, overhead))


def _asked(one: Mapping[str, Any]) -> dict[str, int]:
    given = (one.get("resources") or {}).get("requests") or {}
    return {name: _number(name, str(amount), ROUND_CEILING) for name, amount in given.items()}


def _sum(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in many:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}
