"""What an operator may set about plans; none of it changes where a pod may go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """redo_h: hours of work that an interruption of a spot host costs, boot and lost steps together.

    head_start_s: by how much a level of priority goes before the next lower one in the queue; so what waited longer
    than that goes before newer work of the next higher level, and nothing waits for ever.
    grain_s: pods that came within it count as having come together.
    patience_s: for so long others may take the room that something large waits for. From then on room is held for
    it: hold_s long, then for rest_s not, in turns, because what runs there may have no end.
    """

    redo_h: float = 1.0
    head_start_s: int = 6 * 3600
    grain_s: int = 600
    patience_s: int = 3600
    hold_s: int = 24 * 3600
    rest_s: int = 2 * 3600
