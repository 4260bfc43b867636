"""`show topology`: a drawing of a cluster."""

from __future__ import annotations

from pathlib import Path

import typer

from cli.actions.flows import source
from cli.output import write_out
from cluster.spec import Cluster
from cluster.writing import bears, write
from components.drawing import html, layout, svg


def show(cluster: Cluster, output: Path | None) -> None:
    """Draw hosts and groups of hosts as boxes, and connections as arrows with ports, from the side that opens them.

    The files are self-contained: any browser shows them, in light and dark mode. Pointing at an arrow shows it alone.
    """
    suffix = output.suffix if output else ".svg"
    if suffix not in (".svg", ".html"):
        raise typer.BadParameter(f"--output: {output} must end in .svg or .html")
    if output and not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    text = html.html(cluster, source(cluster)) if suffix == ".html" else svg.svg(layout.draw(cluster, source(cluster)))
    if output:
        write(output, text, "a drawing or a page of topology", bears('id="drawing-title"'))
    else:
        write_out(text)
