"""`show prices`: what a node of each pool in the region costs, as the expander knows it."""

from __future__ import annotations

from cli.output import console, print_json
from cluster.spec import Cluster
from controllers.expander.offers import prices_of


def show(cluster: Cluster, *, as_json: bool) -> None:
    """Print the price of each pool, from the spec."""
    by_pool = prices(cluster)
    if as_json:
        print_json({"pools": by_pool})
        return
    for pool, price in by_pool.items():
        way_out = f"price unknown; write it as autoscaler.prices: {{{pool}: <$/h>}}"
        text = way_out if price is None else f"{price:.4f} $/h"
        console.print(f"{pool:<24} {cluster.spec.pools[pool].machine or '':<24} {text}")


def prices(cluster: Cluster) -> dict[str, float | None]:
    """Return pool in the region -> dollars per hour."""
    lookup = prices_of(cluster)
    priced = {name: lookup(name, "").price for name, pool in cluster.spec.pools.items() if pool.machine is not None}
    return {name: None if price is None else price / 1e6 for name, price in priced.items()}
