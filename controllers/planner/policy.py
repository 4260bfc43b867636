"""What an operator may set for plans. None of it changes where a pod may run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of the planner.

    redo_h: hours of work that an interruption of a spot host costs, including boot and lost steps.
    head_start_s: the lead of a level of priority over the next lower one in the queue. Work that has waited longer than this precedes
    newer work of the next higher level, so nothing waits forever.
    grain_s: pods that arrive within this time count as arriving together.
    patience_s: for this long, others may take the room that a large unit waits for. After that, room is held for it in turns: for
    hold_s, then not for rest_s, because what runs there may never end.
    """

    redo_h: float = 1.0
    head_start_s: int = 6 * 3600
    grain_s: int = 600
    patience_s: int = 3600
    hold_s: int = 24 * 3600
    rest_s: int = 2 * 3600
