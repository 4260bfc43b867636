"""`web`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import CertOpt, ClustersArg, KeyOpt, pair
from cli.specs import checked


@examples(
    ("web", "all clusters, for a browser on this machine"),
    ("web lab --port 8080", "one cluster, on a port that you choose"),
    ("web jaguar --host 10.8.0.5 --cert c.pem --key k.pem", "for a network"),
)
def web(
    clusters: ClustersArg = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="TCP port. Default: a free one.")
    ] = 0,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    cert: CertOpt = None,
    key: KeyOpt = None,
) -> None:
    """Show the fleet in a browser, until Ctrl-C. The pages are read-only.

    They have every cluster's state, drawing, operations, free capacity and
    waiting pods, and say how old their data is. Clusters are read in the
    background with your credentials.

    Prints a link with a secret; who has it can read the pages, from this machine
    only. With another --host the pages are one cluster's, over TLS, and who
    reads them needs a token of that cluster with the right to list its nodes and
    pods. docs/how-to/web.md
    """
    tls = pair(cert, key)
    loaded = {name: checked(name) for name in clusters or ()}
    from cli.actions import web

    web.web(loaded, host, port, tls)
