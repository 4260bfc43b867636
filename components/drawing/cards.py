"""The content of a drawing: bands of cards, without positions."""

from __future__ import annotations

from dataclasses import dataclass

from components.flows.flow import Role


@dataclass(frozen=True)
class Card:
    """One thing. zone: its zone, None if it is in several or none. about: what its lines omit."""

    id: str
    name: str
    lines: tuple[str, ...] = ()
    zone: str | None = None
    about: str = ""


@dataclass(frozen=True)
class Band:
    """Things of one role. role: None if they neither open nor accept connections.

    in_region: whether it is drawn inside the region. cells: draw small cards, because there are many.
    """

    id: str
    title: str
    facts: str
    kind: str
    role: Role | None
    cards: tuple[Card, ...] = ()
    in_region: bool = True
    cells: bool = False
