"""Network security groups: Azure would admit exactly what the table of flows says."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import product

import pytest

from cluster.network import NODE_PORTS
from cluster.sources import source_of
from cluster.subnets import region_subnets
from components.flows.flow import Protocol, Role, ranges
from components.flows.table import flows
from stacks.firewalls import UNFILTERED

PROBE, FAR = "168.63.129.16", "203.0.113.9"
RESOURCE_MANAGER = "203.0.113.200"
TAGS = {"AzureLoadBalancer": {PROBE}, "Internet": {FAR}, "AzureResourceManager": {RESOURCE_MANAGER}}
STRANGE_PORT = 4444
BALANCERS = {Role.LOAD_BALANCER, Role.PUBLIC_BALANCER}
PROTOCOLS = {Protocol.TCP: "Tcp", Protocol.UDP: "Udp"}


def covers(rule, side, address):
    """Whether one side of a rule contains an address."""
    prefixes = rule.get(f"{side}AddressPrefixes") or [rule[f"{side}AddressPrefix"]]
    return any(
        prefix == "*" or (address in TAGS[prefix] if prefix in TAGS else ip_address(address) in ip_network(prefix))
        for prefix in prefixes
    )


def span(text):
    """Return the range of a rule's text: "443", "30000-32767"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def passes(rules, direction, source, destination, protocol, port):
    """Whether a group admits a connection: the first matching rule by priority decides."""
    for rule in sorted(rules, key=lambda rule: rule["priority"]):
        ports = rule.get("destinationPortRanges") or [rule["destinationPortRange"]]
        if (
            rule["direction"] == direction
            and rule["protocol"] in ("*", PROTOCOLS[protocol])
            and (ports == ["*"] or any(port in range_ for range_ in map(span, ports)))
            and covers(rule, "source", source)
            and covers(rule, "destination", destination)
        ):
            return rule["access"] == "Allow"
    raise AssertionError("no rule of the group matches, so Azure's own rules would decide")


class Filter:
    """The groups of a network, by subnet."""

    def __init__(self, account):
        groups = {
            record.id: record.inputs["securityRules"] for record in account.records("network:NetworkSecurityGroup")
        }
        self.of = {
            ip_network(subnet["addressPrefix"]): groups[subnet["networkSecurityGroup"]["id"]]
            for subnet in account.subnets.values()
            if "networkSecurityGroup" in subnet
        }

    def guarding(self, address):
        return next((rules for subnet, rules in self.of.items() if ip_address(address) in subnet), None)

    def lets(self, source, destination, protocol, port):
        out, into = self.guarding(source), self.guarding(destination)
        leaves = out is None or passes(out, "Outbound", source, destination, protocol, port)
        return leaves and (into is None or passes(into, "Inbound", source, destination, protocol, port))


@pytest.fixture
def places(account):
    """Role -> an address of a host with this role."""
    spec, plan, ranges = account.cluster.spec, account.plan, region_subnets(account.cluster.spec)
    addresses = {
        Role.OPERATOR: str(spec.control_plane.operators[-1][9]),
        Role.API_SERVER: str(ranges.api_servers[20]),
        Role.ETCD_MAIN: str(plan.etcd["main"][0].address),
        Role.WORKER_IN_REGION: str(ranges.workers[300]),
        Role.SECRET_STORE: str(ranges.endpoints[7]),
        Role.ARTEFACT_MIRROR: FAR,
        Role.REGISTRY: FAR,
        Role.CLOUD_API: RESOURCE_MANAGER,
    }
    if spec.storage.file:
        # Endpoints share a subnet, and rules refer to the subnet.
        addresses[Role.FILE_STORE] = addresses[Role.SECRET_STORE]
    if spec.control_plane.public:
        addresses[Role.PUBLIC_OPERATOR] = str(spec.control_plane.public.operators[0][3])
    if spec.sites:
        addresses[Role.ETCD_EVENTS] = str(plan.etcd["events"][0].address)
        addresses[Role.WORKER_AT_SITE] = str(spec.sites["sjc1"].racks["r2"][11])
        addresses[Role.ARTEFACT_MIRROR] = "10.9.0.5"
        addresses[Role.REGISTRY] = FAR
    return addresses


def test_admitted_traffic_matches_the_table(account, places):
    table = flows(account.cluster, account_source(account))
    expected = set()
    for flow in table:
        # Behind the load balancer's address are API servers, and packets keep their senders' addresses.
        destination = Role.API_SERVER if flow.destination in BALANCERS else flow.destination
        source, target = places.get(flow.source), places.get(destination)
        if source and target and flow.source not in BALANCERS:
            expected |= {(source, target, flow.protocol, edge) for pair in ranges(flow.ports) for edge in pair}
    named_by_rules = {
        edge
        for group in account.of("network:NetworkSecurityGroup")
        for rule in group["securityRules"]
        for ports in map(span, rule.get("destinationPortRanges", ()))
        for edge in (ports[0], ports[-1])
    }
    edges = {edge for flow in table for pair in ranges(flow.ports) for edge in pair}
    ports = sorted(named_by_rules | edges | {STRANGE_PORT, NODE_PORTS[0] - 1, NODE_PORTS[-1] + 1})
    filter_ = Filter(account)
    others = {str(account.cluster.spec.network.nodes[250]), "10.255.0.1", FAR}
    addresses = sorted({*places.values(), *others})
    admitted = {
        (source, target, protocol, port)
        for source, target in product(addresses, addresses)
        for protocol, port in product(PROTOCOLS, ports)
        if (filter_.guarding(source) or filter_.guarding(target)) and filter_.lets(source, target, protocol, port)
    }
    filtered = {
        connection for connection in expected if filter_.guarding(connection[0]) or filter_.guarding(connection[1])
    }
    # Rules can't contain names: for a registry with a name, its port is open to every address.
    opened = {connection for connection in admitted if registry_by_name(account) and connection[3] == 5000}
    assert admitted - opened == filtered - opened
    assert {connection for connection in filtered if connection[3] == 5000} <= admitted


def account_source(account):
    return source_of(account.cluster.spec)


def registry_by_name(account):
    return account.cluster.spec.artefacts.registry is not None


def test_members_of_one_etcd_cannot_reach_the_other(wide):
    plan, filter_ = wide.plan, Filter(wide)
    for role, other in (("main", "events"), ("events", "main")):
        for mine, theirs in product(plan.etcd[role], plan.etcd[other]):
            for port in (2379, 2380, 2381, 2382):
                assert not filter_.lets(str(mine.address), str(theirs.address), Protocol.TCP, port)


def test_the_load_balancers_probe_reaches_only_api_servers(account, places):
    filter_ = Filter(account)
    assert filter_.lets(PROBE, places[Role.API_SERVER], Protocol.TCP, 6443)
    for role, port in ((Role.ETCD_MAIN, 2379), (Role.WORKER_IN_REGION, 10250), (Role.SECRET_STORE, 443)):
        assert not filter_.lets(PROBE, places[role], Protocol.TCP, port)


def test_there_is_a_rule_for_every_flow_that_a_group_filters(account):
    """Only flows that Azure does not filter are omitted."""
    table = flows(account.cluster, account_source(account))
    filtered = {flow for flow in table if UNFILTERED.isdisjoint({flow.source, flow.destination})}
    inside = {Role.API_SERVER, Role.ETCD_MAIN, Role.ETCD_EVENTS, Role.WORKER_IN_REGION, Role.SECRET_STORE}
    inside |= {Role.FILE_STORE, Role.BUCKETS}
    expected = sum((flow.source in inside) + (flow.destination in {*inside, *BALANCERS}) for flow in filtered)
    rules = [rule for group in account.of("network:NetworkSecurityGroup") for rule in group["securityRules"]]
    assert len([rule for rule in rules if rule["access"] == "Allow"]) == expected


def test_each_rule_applies_to_one_subnet_so_that_one_group_can_protect_all(account):
    subnets = list(Filter(account).of)
    for group in account.of("network:NetworkSecurityGroup"):
        for rule in group["securityRules"]:
            side = "destination" if rule["direction"] == "Inbound" else "source"
            prefixes = rule.get(f"{side}AddressPrefixes") or [rule[f"{side}AddressPrefix"]]
            if rule["access"] == "Allow":
                assert len([subnet for subnet in subnets if ip_network(prefixes[0]).subnet_of(subnet)]) == 1
                assert all(any(ip_network(prefix).subnet_of(subnet) for subnet in subnets) for prefix in prefixes)


def test_nothing_is_admitted_from_the_internet_and_ssh_from_nowhere(account):
    for group in account.of("network:NetworkSecurityGroup"):
        for rule in group["securityRules"]:
            if (rule["direction"], rule["access"]) == ("Inbound", "Allow"):
                assert rule.get("sourceAddressPrefix") not in ("*", "Internet", "0.0.0.0/0", "VirtualNetwork")
                assert "22" not in rule["destinationPortRanges"]
            assert len(rule["description"]) <= 140
