"""`show topology`: a cluster as a drawing."""

from __future__ import annotations

from pathlib import Path

import typer

from cli.output import write_out
from cli.specs import checked
from cluster.writing import bears, write


def show(cluster: str, output: Path | None) -> None:
    """Boxes are hosts and groups of them; an arrow leads from who opens connections to who takes them, with the ports.

    The files need nothing else: any browser shows them, by day and by night, and pointing at an arrow shows it alone.
    """
    one = checked(cluster, allow_unknown=True)
    from cli.drawing import html, layout, svg
    from cli.flows import source

    suffix = output.suffix if output else ".svg"
    if suffix not in (".svg", ".html"):
        raise typer.BadParameter(f"{output} ends neither in .svg nor in .html, so it is unclear what to write")
    if output and not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    made = html.html(one, source(one)) if suffix == ".html" else svg.svg(layout.draw(one, source(one)))
    if output:
        write(output, made, "a drawing or a page of topology", bears('id="drawing-title"'))
    else:
        write_out(made)
