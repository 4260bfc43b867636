"""The lab's router against the table: which connections between roles it lets through."""

from __future__ import annotations

import re
from itertools import product

import pytest

from cluster.artefacts import ArtefactSource
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.flows.flow import Protocol, Role, ranges
from components.flows.table import flows
from network.addresses import plan
from sandbox.lab import plan as lab_plan
from sandbox.lab import rules
from sandbox.lab.prepare import lab_spec
from stacks.lab.workers import between_workers, workers_in_region

REGION = {"pools": {"region": {"machine": "lab-small", "min": 1, "max": 1}}}
SOURCE = ArtefactSource(lab_plan.MIRROR_URL, {}, lab_plan.REGISTRY)
# The store has its own network, and a lab has no resolver, time server or metadata; pods cross the router only in VXLAN.
PLACED_ELSEWHERE = {Role.SECRET_STORE, Role.RESOLVER, Role.TIME_SERVER, Role.METADATA, Role.POD}


@pytest.fixture(scope="module")
def lab(build):
    """Return the lab's cluster as it is in inventories/."""
    return build(REGION)


@pytest.fixture(scope="module")
def table(lab):
    return flows(lab, SOURCE, lab_plan.BUCKETS_URL)


@pytest.fixture(scope="module")
def places(lab):
    """Return role -> (bridge, address) of each of its machines."""
    address_plan = plan(lab)
    cloud = {
        Role.LOAD_BALANCER: [address_plan.endpoint],
        Role.API_SERVER: [host.address for host in address_plan.api_servers],
        Role.ETCD_MAIN: [host.address for host in address_plan.etcd["main"]],
        Role.ETCD_EVENTS: [host.address for host in address_plan.etcd["events"]],
    }
    services = [("br-services", lab_plan.SERVICES_ADDRESS)]
    return {
        Role.OPERATOR: [(rules.UPLINK, lab_plan.UPLINK_RANGE[1])],
        **{role: [("br-cloud", address) for address in hosts] for role, hosts in cloud.items()},
        Role.WORKER_IN_REGION: [("br-workers", worker.host.address) for worker in workers_in_region(lab)],
        Role.WORKER_AT_SITE: [(f"br-{host.rack}", host.address) for _, host in lab.host_list()],
        Role.ARTEFACT_MIRROR: services,
        Role.REGISTRY: services,
        Role.BUCKETS: services,
    }


@pytest.fixture(scope="module")
def forwarding(lab):
    """Return the rules of the router's forward chain that see the first packet of a connection."""
    text = rules.router(lab_spec(lab, None, (API_PORT, KONNECTIVITY_PORT), between_workers(lab)))
    chain = re.search(r"chain forwarding \{\n(.*?)\n    \}", text, re.DOTALL)[1].splitlines()
    assert "hook forward" in chain[0]
    assert "policy drop" in chain[0]
    return [line.strip() for line in chain[1:] if not line.strip().startswith("ct state")]


def lets_through(forwarding, source, destination, protocol, port):
    packet = {
        "iifname": source[0],
        "oifname": destination[0],
        "ip daddr": str(destination[1]),
        f"{protocol} dport": str(port),
    }
    for line in forwarding:
        matches = re.findall(r"(iifname|oifname|ip daddr|\w+ dport) (\{[^}]*\}|\S+)", line)
        if all(is_one_of(packet.get(key), re.findall(r"[\w.-]+", values)) for key, values in matches):
            return line.split(" comment ")[0].endswith("accept")
    return False


def is_one_of(value, values):
    """Return whether a value matches one of several names, addresses or ports; values may be ranges."""
    spans = [each.split("-") for each in values if re.fullmatch(r"\d+-\d+", each)]
    return value in values or any(int(first) <= int(value) <= int(last) for first, last in spans if value)


def crossings(places, table):
    """Yield (source, destination, from, to, protocol, port) of every connection to try across the router.

    For a range of ports, it tries the first and the last, and their neighbours."""
    edges = {edge for flow in table for first, last in ranges(flow.ports) for edge in (first, last)}
    ports = edges | {29_999, 32_768} | {22, 9_999}
    for (source, senders), (destination, takers) in product(places.items(), repeat=2):
        for sender, taker in product(senders, takers):
            if sender[0] != taker[0]:
                for protocol, port in product((Protocol.TCP, Protocol.UDP), ports):
                    yield source, destination, sender, taker, protocol, port


def test_every_role_is_in_the_lab_or_out_of_the_routers_sight(table, places):
    assert {role for flow in table for role in (flow.source, flow.destination)} == {*places} | PLACED_ELSEWHERE


def test_the_router_lets_through_what_the_table_says(table, places, forwarding):
    allowed = {(f.source, f.destination, f.protocol, port) for f in table for port in f.ports}
    stopped = [
        (source, destination, protocol, port)
        for source, destination, sender, taker, protocol, port in crossings(places, table)
        if (source, destination, protocol, port) in allowed
        and not lets_through(forwarding, sender, taker, protocol, port)
    ]
    assert stopped == []


def test_the_router_lets_nothing_else_through_except_to_services_between_racks_and_from_the_operator(
    table, places, forwarding
):
    """There it opens whole networks: the operator's machine hosts the lab, and services hold nothing of the cluster."""
    allowed = {(f.source, f.destination, f.protocol, port) for f in table for port in f.ports}
    whole = {Role.ARTEFACT_MIRROR, Role.REGISTRY, Role.BUCKETS}
    passed = {
        (source, destination, protocol, port)
        for source, destination, sender, taker, protocol, port in crossings(places, table)
        if source is not Role.OPERATOR
        and destination not in whole
        and (source, destination) != (Role.WORKER_AT_SITE, Role.WORKER_AT_SITE)
        and lets_through(forwarding, sender, taker, protocol, port)
    }
    assert passed - allowed == set()
    workers = (Role.WORKER_AT_SITE, Role.WORKER_IN_REGION)
    services = {(protocol, port) for protocol in (Protocol.TCP, Protocol.UDP) for port in (30_000, 32_767)}
    between = {(Protocol.TCP, 9100), (Protocol.TCP, 10250), (Protocol.UDP, 8472)} | services
    assert passed == {
        (worker, Role.LOAD_BALANCER, Protocol.TCP, port) for worker in workers for port in (6443, 8132)
    } | {(source, destination, *flow) for source, destination in (workers, workers[::-1]) for flow in between}
