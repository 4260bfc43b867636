"""Where a scraper finds the relays of metrics, compared with addresses, certificates and what hosts run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.metrics.jobs import BY_NAME
from cluster.metrics.model import Per
from cluster.spec import Cluster
from components.control_plane import metrics_relay, scraper
from components.control_plane.host import scraping
from components.monitoring.endpoints import endpoints
from components.monitoring.targets import targets
from etcd import relay
from network.addresses import plan

REGION = {"cpu": {"machine": "m", "max": 3}}
OF_HOSTS = {Per.API_SERVER, Per.MEMBER_OF_MAIN, Per.MEMBER_OF_EVENTS}


def test_every_job_of_control_plane_hosts_has_targets_and_no_other(lab: Cluster) -> None:
    places = targets(lab, plan(lab))
    assert set(places) == {name for name, job in BY_NAME.items() if job.targets in OF_HOSTS}
    for job, place in places.items():
        endpoint = endpoints(lab)[job]
        assert (endpoint.scheme, endpoint.port, endpoint.path) == ("https", place.port, place.path)
        assert endpoint.closed == ""
        assert bool(place.addresses) != bool(place.service)


def test_members_of_each_etcd_are_found_by_their_addresses(lab: Cluster) -> None:
    places = targets(lab, plan(lab))
    assert places["etcd-main"].addresses == ("10.77.0.21:2396", "10.77.0.22:2396", "10.77.0.23:2396")
    assert places["etcd-events"].addresses == ("10.77.0.31:2396", "10.77.0.32:2396", "10.77.0.33:2396")
    assert {places[job].server_name for job in ("etcd-main", "etcd-events")} == {""}


def test_members_of_events_on_hosts_of_main_are_found_there(build: Callable[..., Cluster]) -> None:
    cluster = build({"etcd": {"events": {"hosts": "main"}}})
    places = targets(cluster, plan(cluster))
    assert places["etcd-events"].addresses == places["etcd-main"].addresses
    assert places["etcd-events"].path != places["etcd-main"].path


@pytest.mark.parametrize("cloud", ["lab", "aws", "azure", "gcp"])
def test_api_servers_whose_addresses_a_cloud_chooses_are_found_by_a_service(
    build: Callable[..., Cluster], cloud: str
) -> None:
    cluster = build({"control_plane": {"cloud": cloud}, "network": {"nodes": "10.177.0.0/16"}, "pools": REGION})
    for job in metrics_relay.JOBS:
        place = targets(cluster, plan(cluster))[job]
        assert place.service == "api-servers.menagerie-monitoring.svc.cluster.local"
        assert place.server_name == scraper.API_SERVERS == f"{scraping.SERVICE}.{scraping.NAMESPACE}.svc"


def test_ports_of_etcds_are_left_to_them(build: Callable[..., Cluster]) -> None:
    cluster = build({"etcd": {"main": {"client_port": 2396, "peer_port": 2397}}})
    assert targets(cluster, plan(cluster))["etcd-main"].port == 2398


@pytest.mark.parametrize("changes", [{"monitoring": {"enabled": False}}, {"pools": {"workers": None}}])
def test_without_a_scraper_there_are_no_targets_and_no_relays(
    build: Callable[..., Cluster], changes: dict[str, object]
) -> None:
    cluster = build(changes)
    assert targets(cluster, plan(cluster)) == {}
    assert not metrics_relay.is_on(cluster)
    assert relay.host_config(cluster, "etcd-main-1", plan(cluster)).files == ()
