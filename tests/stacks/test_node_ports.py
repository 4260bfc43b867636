"""Ports of Services on workers in the region, as the firewall of each cloud is told of them. No engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.load import load_cluster
from cluster.network import NodePorts
from cluster.sources import source_of
from cluster.subnets import worker_ranges
from components.flows.flow import Protocol, Role
from components.flows.table import flows
from network import addresses
from stacks.aws import rules as aws
from stacks.azure import rules as azure
from stacks.gcp import rules as gcp

EXAMPLES = Path(__file__).parents[2] / "examples"
BOTH = {Protocol.TCP, Protocol.UDP}
FIRST, LAST = 30000, 32767


def cluster_of(cloud, **node_ports):
    cluster = load_cluster(EXAMPLES / f"{cloud}-small" / "cluster.yaml")
    network = cluster.spec.network.model_copy(update={"node_ports": NodePorts.model_validate(node_ports)})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"network": network})})


def let_into_workers(cloud, cluster):
    """(protocol, whom) that the cloud lets in at the ports of Services, and at all of them."""
    plan, source = addresses.plan(cluster), source_of(cluster.spec)
    table = flows(cluster, source)
    if cloud == "aws":
        made = aws.rules(table, aws.ranges_of(cluster, plan, source))
        mine = [each for each in made if each.group is Role.WORKER_IN_REGION and each.direction is aws.Direction.IN]
        return {(each.protocol, str(each.peer)) for each in mine if each.ports == (FIRST, LAST)}
    if cloud == "azure":
        ranges = tuple(map(str, worker_ranges(cluster.spec)))
        made = azure.rules(cluster, plan, source, table)
        mine = [each for each in made if each.destinations == ranges and each.direction is azure.Direction.IN]
        return {
            (each.protocol, who)
            for each in mine
            for who in each.sources
            if (each.ports[0], each.ports[-1]) == (FIRST, LAST)
        }
    made = gcp.rules(cluster, plan, source, table)
    return {
        (protocol, who)
        for each in made
        if each.direction is gcp.Direction.IN
        and set(each.targets) <= set(gcp.readers_of(cluster, plan)[Role.WORKER_IN_REGION])
        for protocol, ports in each.services
        for who in each.ranges
        if ports and (ports[0], ports[-1]) == (FIRST, LAST)
    }


def workers(cloud, cluster):
    return {Role.WORKER_IN_REGION.value} if cloud == "aws" else {str(each) for each in worker_ranges(cluster.spec)}


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_each_cloud_opens_them_to_workers_and_to_nobody_else(cloud):
    cluster = cluster_of(cloud)
    assert let_into_workers(cloud, cluster) == {(protocol, who) for protocol in BOTH for who in workers(cloud, cluster)}


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_each_cloud_opens_them_to_whom_the_spec_names_and_closes_them_to_the_cluster(cloud):
    cluster = cluster_of(cloud, cluster=False, outside=["192.0.2.0/24"])
    assert let_into_workers(cloud, cluster) == {(protocol, "192.0.2.0/24") for protocol in BOTH}
    assert not let_into_workers(cloud, cluster_of(cloud, cluster=False))
