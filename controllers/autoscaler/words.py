"""Durations in reasons."""

from __future__ import annotations


def lasting(seconds: float) -> str:
    """Return a duration in words: ``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
