"""`expander run` and `expander prices`: cluster-autoscaler's node groups, chosen by our planner."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ClusterArg, JsonOpt, examples
from cli.output import console, note, print_json
from cli.specs import checked

if TYPE_CHECKING:
    from cluster.spec import Cluster

app = typer.Typer(
    help="Let cluster-autoscaler ask our planner which node group to grow. docs/how-to/expander.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FILE = {"exists": True, "dir_okay": False, "readable": True}


@app.command(
    epilog=examples(
        ("expander run horus --cert tls.crt --key tls.key", "beside cluster-autoscaler"),
        ("expander run horus --cert tls.crt --key tls.key --listen 0.0.0.0:7000", "as a Service"),
    )
)
def run(
    cluster: ClusterArg,
    cert: Annotated[
        Path, typer.Option("--cert", help="The server's certificate, PEM. Read again when it changes.", **_FILE)
    ],
    key: Annotated[Path, typer.Option("--key", help="Its key, PEM.", **_FILE)],
    client_ca: Annotated[
        Path | None,
        typer.Option(
            "--client-ca",
            help="Answer only who has a certificate of this CA. cluster-autoscaler's own client has none.",
            **_FILE,
        ),
    ] = None,
    listen: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Where to answer.")] = "127.0.0.1:7000",
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            min=0.1,
            max=4.5,
            help="Then all groups are as good. The caller waits for 5 s.",
        ),
    ] = 3.0,
) -> None:
    """Answer cluster-autoscaler which of its node groups is the cheapest for the pods that wait.

    Flags of cluster-autoscaler: --expander=grpc,least-waste
    --grpc-expander-url=HOST:PORT --grpc-expander-cert=FILE of the CA of --cert.

    Changes nothing. Where no price is known, or the question can't be
    answered in time, all groups are answered, and its next expander decides.
    """
    from controllers.expander.offers import prices_of
    from controllers.expander.server import Expander, Tls, serve

    loaded = checked(cluster)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for name in _unpriced(loaded):
        note(f"no price is known of pool {name}: where it is offered, the next expander decides")
    expander = Expander(prices_of(loaded), deadline)
    server, port = serve(expander, listen, Tls(cert, key, client_ca))
    note(f"answers on {listen.rpartition(':')[0]}:{port}")
    try:
        server.wait_for_termination()
    finally:
        server.stop(grace=deadline).wait()
        expander.close()


@app.command(
    epilog=examples(
        ("expander prices horus", "which pools have a price"), ("expander prices horus --json", "for a program")
    )
)
def prices(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show what a node of each pool in the region costs, as the expander knows it. Reads the spec only.

    One pool without a price is enough for the expander to decide nothing where that pool is offered.
    """
    loaded = checked(cluster)
    found = _prices(loaded)
    if as_json:
        print_json({"pools": found})
        return
    for name, price in found.items():
        told = "no price is known" if price is None else f"{price:.4f} $/h"
        console.print(f"{name:<24} {loaded.spec.pools[name].machine or '':<24} {told}")


def _prices(cluster: Cluster) -> dict[str, float | None]:
    """Pool in the region -> dollars an hour."""
    from controllers.expander.offers import prices_of

    of = prices_of(cluster)
    priced = {name: of(name, "").price for name, pool in cluster.spec.pools.items() if pool.machine is not None}
    return {name: None if price is None else price / 1e6 for name, price in priced.items()}


def _unpriced(cluster: Cluster) -> list[str]:
    return [name for name, price in _prices(cluster).items() if price is None]
