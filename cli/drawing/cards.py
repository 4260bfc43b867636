"""The words of a drawing: bands of cards, without places."""

from __future__ import annotations

from dataclasses import dataclass

from components.flows.flow import Role


@dataclass(frozen=True)
class Card:
    """One thing. zone: the only one that it stands in. about: what its lines leave out."""

    id: str
    name: str
    lines: tuple[str, ...] = ()
    zone: str | None = None
    about: str = ""


@dataclass(frozen=True)
class Band:
    """Things of one role, None where nothing opens or takes connections.

    in_region: drawn inside the region. cells: cards as small as can be, for there are many.
    """

    id: str
    title: str
    facts: str
    kind: str
    role: Role | None
    cards: tuple[Card, ...] = ()
    in_region: bool = True
    cells: bool = False
