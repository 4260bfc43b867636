"""`web`: serve the pages until interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import typer

from cli.actions.flows import source
from cli.failures import explain
from cli.output import console, errors
from clients.access import Access
from clients.tls import server_context
from cluster.load import clusters, find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from components.drawing.layout import draw
from components.drawing.shapes import Drawing
from controllers.web.app import application
from controllers.web.facts import Site
from controllers.web.guards import CONNECTIONS, ClusterGuard, LinkGuard, in_url, is_loopback
from controllers.web.operator import Ways, reading_all
from controllers.web.serving import listening, serving
from operations import stack


def web(named: Mapping[str, Cluster], host: str, port: int, pair: tuple[Path, Path] | None) -> None:
    """Serve the pages of these clusters until interrupted; of all clusters if there are none. pair: certificate and key."""
    shared = _shared(named, host, pair)
    tls = server_context(*pair, "web") if pair else None
    listener = listening(host, port)
    with ExitStack() as resources:
        resources.callback(listener.close)
        at = f"{in_url(host)}:{listener.getsockname()[1]}"
        link = LinkGuard(host, listener.getsockname()[1])
        site = Site(resources.enter_context(reading_all(_ways(named))), time.time)
        guard = _guard(shared, site) if shared else link
        resources.enter_context(serving(application(site, guard), listener, tls))
        console.print(f"https://{at}/" if shared else f"http://{at}/{link.secret}/", markup=False)
        errors.print("Ctrl-C ends it", style="dim")
        with suppress(KeyboardInterrupt):  # it ends this way
            threading.Event().wait()


def _shared(named: Mapping[str, Cluster], host: str, pair: tuple[Path, Path] | None) -> Access | None:
    """Return the access to the cluster that decides who may read, None if only this machine reaches the pages."""
    if is_loopback(host):
        if pair:
            raise typer.BadParameter("--cert and --key are for another --host: only this machine reaches the pages")
        return None
    if len(named) != 1 or pair is None:
        raise typer.BadParameter(
            f"--host: other machines reach {host}; name one cluster, which decides who may read, and give --cert and "
            "--key; or leave --host out and use ssh -L"
        )
    (cluster,) = named.values()
    return stack.access_to(cluster)


def _guard(shared: Access, site: Site) -> ClusterGuard:
    return ClusterGuard(partial(shared.api, once=True, connections=CONNECTIONS), teams=site.team_namespaces)


def _ways(named: Mapping[str, Cluster]) -> dict[str, Ways]:
    if named:
        return {cluster.name: Ways(partial(_itself, cluster), _draw, _words) for cluster in named.values()}
    return {name: Ways(partial(_load, name), _draw, _words) for name in clusters(ROOT)}


def _itself(cluster: Cluster) -> Cluster:
    return cluster


def _load(name: str) -> Cluster:
    return load_cluster(find_cluster(name, ROOT))


def _draw(cluster: Cluster) -> Drawing:
    return draw(cluster, source(cluster))


def _words(error: Exception) -> str:
    """Return an error for the page. What nobody foresaw is there as well: it must not hide a cluster."""
    foreseen = explain(error)
    return foreseen.text if foreseen else f"unexpected {type(error).__name__}: {error}"
