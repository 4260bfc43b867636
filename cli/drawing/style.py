"""Colours and fonts of a drawing, for light and dark screens."""

from __future__ import annotations

from collections.abc import Iterable

# Kind -> (line, fill) for light screens, then for dark ones. Text has a contrast above 4.5 on each (WCAG 2.2, 1.4.3).
_COLOURS = {
    "control": (("#1d5fb4", "#e3eefb"), ("#7fb4f5", "#16304f")),
    "etcd": (("#a04b00", "#fcebdc"), ("#f0a868", "#47290d")),
    "workers": (("#1e7a3c", "#e1f4e6"), ("#79cf93", "#133a20")),
    "network": (("#7a3fb0", "#f1e8fa"), ("#c39af0", "#35204d")),
    "outside": (("#5b6470", "#eef0f3"), ("#a3adba", "#2b3139")),
}
_INK, _DIM, _PAPER, _PLACE, _ZONE = range(5)
_PLAIN = (
    ("#1b1f24", "#4b5560", "#ffffff", "#8c959f", "#f1f3f6"),
    ("#e8ecf1", "#aeb8c4", "#14181d", "#6b7683", "#1b2027"),
)


def _theme(dark: bool) -> str:
    plain = _PLAIN[dark]
    rules = [
        f"text{{fill:{plain[_INK]}}}",
        f".fact,.note,.zone{{fill:{plain[_DIM]}}}",
        f".paper{{fill:{plain[_PAPER]}}}",
        f"rect.place{{stroke:{plain[_PLACE]}}}",
        f"rect.zone{{fill:{plain[_ZONE]}}}",
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
    rules.append(f".head{{fill:{plain[_DIM]}}}")
    return "\n".join(rules)


SVG_STYLE = f"""
text{{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;white-space:pre}}
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

_PAGE = f"""
:root{{color-scheme:light dark;--ink:{_PLAIN[0][_INK]};--dim:{_PLAIN[0][_DIM]};--paper:{_PLAIN[0][_PAPER]};--stripe:{_PLAIN[0][_ZONE]}}}
@media (prefers-color-scheme:dark){{
:root{{--ink:{_PLAIN[1][_INK]};--dim:{_PLAIN[1][_DIM]};--paper:{_PLAIN[1][_PAPER]};--stripe:{_PLAIN[1][_ZONE]}}}
}}
body{{margin:1rem;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif}}
.drawing{{overflow:auto}}
.drawing>svg{{max-width:none}}
h1{{font-size:1.4rem}} h2{{font-size:1.15rem;margin:2rem 0 .4rem}}
a{{color:inherit}}
table{{border-collapse:collapse;font-size:.9rem}}
caption{{text-align:left;color:var(--dim);padding:.2rem 0}}
th,td{{text-align:left;padding:.2rem .9rem .2rem .3rem;vertical-align:top}}
th{{border-bottom:1px solid var(--dim)}}
tbody tr:nth-child(even),tbody tr:hover{{background:var(--stripe)}}
td.code{{font-family:ui-monospace,Menlo,Consolas,monospace}}
summary{{cursor:pointer}}
"""


def page_style(lines: Iterable[str]) -> str:
    """Return the page's style. Pointing at a row of a flow highlights its line and dims the others."""
    rules = [
        f"body:has(.row-{line}:hover) .flow:not(#{line}){{opacity:.15}}\n"
        f"body:has(.row-{line}:hover) #{line} .line{{stroke-width:3.2}}"
        for line in lines
    ]
    return _PAGE + "\n".join(rules) + "\n"
