"""Colours of uses in the drawings of a bill, as classes of a style sheet: for light and for dark screens. Pure."""

from __future__ import annotations

from controllers.metering.facts import Use

COLOURS = {
    Use.USED: ("#1e7a3c", "#79cf93"),
    Use.HELD: ("#a04b00", "#f0a868"),
    Use.FREE: ("#8c959f", "#6b7683"),
    Use.DRAINED: ("#1d5fb4", "#7fb4f5"),
    Use.BROKEN: ("#b42318", "#f59a91"),
    Use.BOOTING: ("#0b6b75", "#6fcbd6"),
}
"""Use -> its colour on light and on dark screens. Words or a table next to a drawing say the same."""


def css_class(use: Use) -> str:
    """Return the class of a use: ``use-held-idle``."""
    return f"use-{use.replace(' ', '-')}"


def style() -> str:
    """Return the style sheet that fills each class with its colour."""
    light, dark = ("".join(f".{css_class(use)}{{fill:{own[at]}}}" for use, own in COLOURS.items()) for at in (0, 1))
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
