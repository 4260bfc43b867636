"""Colours and fonts of a drawing, for light and dark screens."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.pages import DARK, DIM, INK, LIGHT, LINE, PAPER, STRIPE, STYLE
from components.drawing.live import Health

# Kind -> (line, fill) for light screens, then for dark ones. Text has a contrast above 4.5 on each (WCAG 2.2, 1.4.3).
_COLOURS = {
    "control": (("#1d5fb4", "#e3eefb"), ("#7fb4f5", "#16304f")),
    "etcd": (("#a04b00", "#fcebdc"), ("#f0a868", "#47290d")),
    "workers": (("#1e7a3c", "#e1f4e6"), ("#79cf93", "#133a20")),
    "network": (("#7a3fb0", "#f1e8fa"), ("#c39af0", "#35204d")),
    "storage": (("#0b6b75", "#def3f5"), ("#6fcbd6", "#0f3a40")),
    "outside": (("#5b6470", "#eef0f3"), ("#a3adba", "#2b3139")),
}
# Health -> the same. The line is also the colour of the badge, whose mark has the paper's colour.
_HEALTH = {
    Health.HEALTHY: (("#1e7a3c", "#e1f4e6"), ("#79cf93", "#133a20")),
    Health.PARTLY: (("#8a5a00", "#fdf0cc"), ("#f0c060", "#40300a")),
    Health.DOWN: (("#b3261e", "#fbe3e1"), ("#ff9a92", "#4a1512")),
    Health.OUT: (("#1d5fb4", "#e3eefb"), ("#7fb4f5", "#16304f")),
    Health.UNKNOWN: (("#5b6470", "#eef0f3"), ("#a3adba", "#2b3139")),
}


def _theme(dark: bool) -> str:
    plain = DARK if dark else LIGHT
    rules = [
        f"text{{fill:{plain[INK]}}}",
        f".fact,.note,.zone{{fill:{plain[DIM]}}}",
        f".paper{{fill:{plain[PAPER]}}}",
        f"rect.place{{stroke:{plain[LINE]}}}",
        f"rect.zone{{fill:{plain[STRIPE]}}}",
    ]
    for kind, shades in _COLOURS.items():
        line, fill = shades[dark]
        rules += [
            f".band.{kind}{{stroke:{line}}}",
            f".card.{kind}{{stroke:{line};fill:{fill}}}",
            f".to-{kind} .line{{stroke:{line}}}",
            f".to-{kind} .dot{{fill:{line}}}",
        ]
    rules.append(f".tunnel .line{{stroke:{_COLOURS['network'][dark][0]}}}")
    rules.append(f".head{{fill:{plain[DIM]}}}")
    return "\n".join(rules)


SVG_STYLE = f"""
text{{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;white-space:pre}}
.heading,.title,.name,.port{{font-weight:bold}}
rect.place,rect.band{{fill:none}}
rect.band{{stroke-width:1.2}}
text.zone{{font-style:italic}}
.line{{fill:none;stroke-width:1.6}}
.tunnel .line{{stroke-width:3;stroke-dasharray:9 3}}
{_theme(False)}
@media (prefers-color-scheme:dark){{
{_theme(True)}
}}
.flow,.tunnel{{cursor:help}}
.flow:hover .line,.flow:target .line{{stroke-width:3.2}}
.tunnel:hover .line,.tunnel:target .line{{stroke-width:6}}
svg:has(.flow:hover) .flow:not(:hover),svg:has(.flow:target) .flow:not(:target){{opacity:.2}}
.part:target>rect{{stroke-width:3.5}}
"""


def _live(dark: bool) -> str:
    plain = DARK if dark else LIGHT
    # The colours of kinds are like those of states, so a part without a state has none.
    rules = [
        f".part:not([class*=live-])>rect.card{{stroke:{plain[LINE]};fill:{plain[STRIPE]}}}",
        f".part:not([class*=live-])>rect.band{{stroke:{plain[LINE]}}}",
    ]
    for health, shades in _HEALTH.items():
        line, fill = shades[dark]
        rules += [
            # More specific than the kinds of cards and bands above.
            f".part.live-{health}>rect{{stroke:{line};stroke-width:2}}",
            f".part.live-{health}>rect.card,.key-{health}{{fill:{fill};background:{fill};border-color:{line}}}",
            f".live-{health}>.badge{{fill:{line}}}",
            f".word-{health}{{color:{line}}}",
        ]
    return "\n".join([*rules, f".mark{{fill:{plain[PAPER]}}}"])


LIVE_STYLE = f"""
.mark{{font-weight:bold}}
{_live(False)}
@media (prefers-color-scheme:dark){{
{_live(True)}
}}
.part:target>rect.card,.part:target>rect.band{{stroke-width:5}}
"""
"""For drawings that `components.drawing.live` has coloured."""

DRAWING_STYLE = """
.drawing{overflow:auto;border:1px solid var(--line);border-radius:5px}
.drawing>svg{display:block;max-width:none}
@media (min-width:75rem){.drawing>svg{max-width:100%;height:auto}}
"""


def page_style(lines: Iterable[str]) -> str:
    """Return the page's style. Pointing at a row of a flow highlights its line and dims the others."""
    rules = [
        f"body:has(.row-{line}:hover) .flow:not(#{line}){{opacity:.15}}\n"
        f"body:has(.row-{line}:hover) #{line} .line{{stroke-width:3.2}}"
        for line in lines
    ]
    return STYLE + DRAWING_STYLE + "\n".join(rules) + "\n"
