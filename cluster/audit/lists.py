"""Decisions that go by lists of the API, and what they say where one was not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

from cluster.audit.evidence import Evidence
from cluster.audit.model import Finding

Object = Mapping[str, Any]
Decision = Callable[[Evidence], Iterator[Finding]]


def by_lists(*names: str) -> Callable[[Callable[..., Iterator[Finding]]], Decision]:
    """Give a decision these lists, each after the evidence. Where one was not seen, why is all that is found."""

    def of(decide: Callable[..., Iterator[Finding]]) -> Decision:
        @wraps(decide)
        def decision(evidence: Evidence) -> Iterator[Finding]:
            found = [evidence.objects.get(name, f"{name} were not asked for") for name in names]
            missing = next((each for each in found if isinstance(each, str)), None)
            return decide(evidence, *found) if missing is None else iter((Finding("API", None, missing),))

        return decision

    return of
