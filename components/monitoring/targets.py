"""Where a scraper in the cluster finds the relays of metrics, and how it verifies them: for its scrape configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.spec import Cluster
from components.control_plane import metrics_relay, scraper
from etcd import relay
from etcd.members import relay_port
from network.addresses import ROLES, AddressPlan


@dataclass(frozen=True)
class Targets:
    """The endpoints of a job, all over HTTPS with the scraper's certificate.

    addresses: address:port of each, if the spec decides them. service: instead of them, the DNS name of all addresses, and
    `port`. server_name: by which their certificates are verified, "" for each one's address.
    """

    path: str
    port: int
    addresses: tuple[str, ...] = ()
    service: str = ""
    server_name: str = ""


def targets(cluster: Cluster, plan: AddressPlan) -> Mapping[str, Targets]:
    """Return job -> its endpoints, for the jobs of control-plane hosts; none if no relay runs."""
    if not metrics_relay.is_on(cluster):
        return {}
    port, service = relay_port(cluster), f"{scraper.API_SERVERS}.{cluster.spec.network.domain}"
    of_api = {
        job: Targets(_path(job), port, service=service, server_name=scraper.API_SERVERS) for job in metrics_relay.JOBS
    }
    of_etcds = {
        job: Targets(_path(job), port, tuple(f"{host.address}:{port}" for host in plan.etcd[role]))
        for role in ROLES
        for job in [relay.job(role)]
    }
    return of_api | of_etcds


def _path(job: str) -> str:
    return f"/metrics/{job}"
