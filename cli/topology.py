"""`topology`: a cluster as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import ClusterArg, examples
from cli.output import write_out
from cli.specs import checked
from cluster.writing import bears, write

EXAMPLES = examples(
    ("topology ibis > ibis.svg", "a picture"),
    ("topology ibis -o ibis.html", "a page with tables"),
    ("topology new/cluster.yaml", "not in inventories/ yet"),
)


def topology(
    cluster: ClusterArg,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write FILE.svg, or FILE.html with tables too. Default: SVG here."
        ),
    ] = None,
) -> None:
    """Draw the cluster: zones, hosts, load balancer, etcds, tunnels and flows.

    Reads the spec only, so it shows what `up` would build. Boxes are hosts and
    groups of them; an arrow leads from who opens connections to who takes them,
    with the ports. The files need nothing else: any browser shows them, by day
    and by night, and pointing at an arrow shows it alone. Equal specs give equal
    files, so a difference of two is a difference of the clusters.
    """
    from cli.drawing import html, layout, svg
    from cli.flows import source

    suffix = output.suffix if output else ".svg"
    if suffix not in (".svg", ".html"):
        raise typer.BadParameter(f"{output} ends neither in .svg nor in .html, so it is unclear what to write")
    if output and not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    one = checked(cluster, allow_unknown=True)
    made = html.html(one, source(one)) if suffix == ".html" else svg.svg(layout.draw(one, source(one)))
    if output:
        write(output, made, "a drawing or a page of topology", bears('id="drawing-title"'))
    else:
        write_out(made)
