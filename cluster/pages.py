"""What self-contained HTML pages have in common: how their templates are read, and the style of text and tables."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

INK, DIM, PAPER, LINE, STRIPE = range(5)
LIGHT = ("#1b1f24", "#4b5560", "#ffffff", "#8c959f", "#f1f3f6")
DARK = ("#e8ecf1", "#aeb8c4", "#14181d", "#6b7683", "#1b2027")
"""Colours by `INK` for text, `DIM` for its smaller print, `PAPER`, `LINE` for frames, and `STRIPE` for every other row."""


def _variables(colours: tuple[str, ...]) -> str:
    names = ("ink", "dim", "paper", "line", "stripe")
    return ";".join(f"--{name}:{colour}" for name, colour in zip(names, colours, strict=True))


# On a narrow screen the rows of `table.rows` become lists, each cell with the name of its column. Any other table that is
# wider than the screen scrolls inside its `div.scroll`, and the page never does.
STYLE = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:1rem;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif;overflow-wrap:break-word}}
h1{{font-size:1.4rem;line-height:1.25;margin:.4rem 0}}
h2{{font-size:1.15rem;margin:2rem 0 .4rem}}
a{{color:inherit}}
summary{{cursor:pointer;padding:.2rem 0}}
.scroll{{overflow-x:auto;margin:.3rem 0 1rem}}
table{{border-collapse:collapse;font-size:.9rem;overflow-wrap:normal}}
caption{{text-align:left;color:var(--dim);padding:.2rem 0}}
th,td{{text-align:left;padding:.25rem .9rem .25rem .3rem;vertical-align:top}}
thead th{{border-bottom:1px solid var(--dim);white-space:nowrap}}
tbody tr:nth-child(even),tbody tr:hover{{background:var(--stripe)}}
.code{{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:.92em}}
.number{{text-align:right;font-variant-numeric:tabular-nums}}
.whole{{white-space:nowrap}}
@media (max-width:40rem){{
.rows thead{{display:none}}
.rows,.rows caption,.rows tbody,.rows tr,.rows td{{display:block;width:auto}}
.rows tr{{padding:.4rem .3rem}}
.rows td{{position:relative;min-height:1.45em;padding:.05rem 0 .05rem 7rem;text-align:left;white-space:normal;overflow-wrap:anywhere}}
.rows td:empty{{display:none}}
.rows td::before{{content:attr(data-column);position:absolute;left:0;color:var(--dim);font:.9rem/1.45 system-ui,sans-serif}}
}}
"""


def environment(folder: Path) -> Environment:
    """Return the templates in a folder. Every value is escaped, and a missing one is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template(folder: Path) -> Template:
    """Return the template of the page that `folder` renders."""
    return environment(folder).get_template("page.html.j2")
