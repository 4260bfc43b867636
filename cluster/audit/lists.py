"""Decisions from lists of the API, including lists that weren't seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

from cluster.audit.evidence import Evidence
from cluster.audit.model import Finding

Object = Mapping[str, Any]
Decision = Callable[[Evidence], Iterator[Finding]]


def by_lists(*names: str) -> Callable[[Callable[..., Iterator[Finding]]], Decision]:
    """Pass these lists to a decision, after the evidence. If one wasn't seen, the only finding is the reason."""

    def of(decide: Callable[..., Iterator[Finding]]) -> Decision:
        @wraps(decide)
        def decision(evidence: Evidence) -> Iterator[Finding]:
            lists = [evidence.objects.get(name, f"{name} weren't requested") for name in names]
            missing = next((entry for entry in lists if isinstance(entry, str)), None)
            return decide(evidence, *lists) if missing is None else iter((Finding("API", None, missing),))

        return decision

    return of
