"""`expander run`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, seconds
from cli.specs import checked

_FILE = {"exists": True, "dir_okay": False, "readable": True}
_DEADLINES_S = (0.1, 4.5)
"""Range of --deadline. cluster-autoscaler waits for 5 s."""


@examples(
    ("expander run horus --cert c.pem --key k.pem", "on localhost"),
    ("expander run horus --cert c.pem --key k.pem --listen 0.0.0.0:7000", ""),
)
def run(
    cluster: ClusterArg,
    cert: Annotated[Path, typer.Option("--cert", help="The server's certificate, in PEM.", **_FILE)],
    key: Annotated[Path, typer.Option("--key", help="The certificate's key, in PEM.", **_FILE)],
    client_ca: Annotated[
        Path | None,
        typer.Option(
            "--client-ca",
            help="Answer only clients with a certificate of this CA. cluster-autoscaler's client has none.",
            **_FILE,
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where to listen.")
    ] = "127.0.0.1:7000",
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            parser=seconds,
            help="Time after which to return all groups: 0.1 to 4.5. The caller waits for 5 s.",
        ),
    ] = 3.0,
) -> None:
    """Choose the cheapest of cluster-autoscaler's node groups for the pending pods.

    Run cluster-autoscaler with --expander=grpc,least-waste
    --grpc-expander-url=ADDRESS:PORT --grpc-expander-cert=FILE, the CA of --cert.
    --cert and --key are read again when they change.

    Changes nothing. If a price is unknown, or the choice takes longer than
    --deadline, it returns all groups, and the next expander decides.
    """
    loaded = checked(cluster)
    if not _DEADLINES_S[0] <= deadline <= _DEADLINES_S[1]:
        raise typer.BadParameter(f"--deadline: {deadline:g} s is not between {_DEADLINES_S[0]} and {_DEADLINES_S[1]} s")
    from cli.actions import expander

    expander.run(loaded, listen, cert=cert, key=key, client_ca=client_ca, deadline_s=deadline)
