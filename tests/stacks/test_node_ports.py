"""Ports of Services on workers in the region in each cloud's firewall rules. No engine runs."""

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


def admitted_to_workers(cloud, cluster):
    """Return (protocol, source) of what the cloud admits at the whole range of Service ports."""
    plan, source = addresses.plan(cluster), source_of(cluster.spec)
    table = flows(cluster, source)
    if cloud == "aws":
        rules = aws.rules(table, aws.ranges_of(cluster, plan, source))
        matching = [
            rule for rule in rules if rule.group is Role.WORKER_IN_REGION and rule.direction is aws.Direction.IN
        ]
        return {(rule.protocol, str(rule.peer)) for rule in matching if rule.ports == (FIRST, LAST)}
    if cloud == "azure":
        ranges = tuple(map(str, worker_ranges(cluster.spec)))
        rules = azure.rules(cluster, plan, source, table)
        matching = [rule for rule in rules if rule.destinations == ranges and rule.direction is azure.Direction.IN]
        return {
            (rule.protocol, source)
            for rule in matching
            for source in rule.sources
            if (rule.ports[0], rule.ports[-1]) == (FIRST, LAST)
        }
    rules = gcp.rules(cluster, plan, source, table)
    return {
        (protocol, source)
        for rule in rules
        if rule.direction is gcp.Direction.IN
        and set(rule.targets) <= set(gcp.readers_of(cluster, plan)[Role.WORKER_IN_REGION])
        for protocol, ports in rule.services
        for source in rule.ranges
        if ports and (ports[0], ports[-1]) == (FIRST, LAST)
    }


def workers(cloud, cluster):
    return {Role.WORKER_IN_REGION.value} if cloud == "aws" else {str(range_) for range_ in worker_ranges(cluster.spec)}


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_each_cloud_opens_service_ports_to_workers_only(cloud):
    cluster = cluster_of(cloud)
    assert admitted_to_workers(cloud, cluster) == {
        (protocol, source) for protocol in BOTH for source in workers(cloud, cluster)
    }


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_each_cloud_opens_service_ports_to_the_sources_of_the_spec_and_closes_them_to_the_cluster(cloud):
    cluster = cluster_of(cloud, cluster=False, outside=["192.0.2.0/24"])
    assert admitted_to_workers(cloud, cluster) == {(protocol, "192.0.2.0/24") for protocol in BOTH}
    assert not admitted_to_workers(cloud, cluster_of(cloud, cluster=False))
