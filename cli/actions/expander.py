"""`expander run`: our planner chooses node groups for cluster-autoscaler."""

from __future__ import annotations

import logging
from pathlib import Path

from cli.actions.prices import prices
from clients import logs
from cluster.spec import Cluster
from controllers.expander.offers import prices_of
from controllers.expander.server import Expander, Tls, serve

log = logging.getLogger(__name__)


def run(cluster: Cluster, listen: str, *, cert: Path, key: Path, client_ca: Path | None, deadline_s: float) -> None:
    """Serve until the process ends. deadline_s: time after which all groups are returned."""
    logs.set_up()
    for name, price in prices(cluster).items():
        if price is None:
            log.warning("pool %s has no known price; the next expander decides about requests that offer it", name)
    expander = Expander(prices_of(cluster), deadline_s)
    server, port = serve(expander, listen, Tls(cert, key, client_ca))
    log.info("listening on %s:%d", listen.rpartition(":")[0], port)
    try:
        server.wait_for_termination()
    finally:
        server.stop(grace=deadline_s).wait()
        expander.close()
