"""Network security groups: what Azure would let through by them is what the table of flows says, and nothing more."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import product

import pytest

from cluster.network import NODE_PORTS
from cluster.sources import source_of
from cluster.subnets import region_subnets
from components.flows.flow import Protocol, Role, ranges
from components.flows.table import flows
from stacks.azure.rules import UNFILTERED

PROBE, FAR = "168.63.129.16", "203.0.113.9"
RESOURCE_MANAGER = "203.0.113.200"
TAGS = {"AzureLoadBalancer": {PROBE}, "Internet": {FAR}, "AzureResourceManager": {RESOURCE_MANAGER}}
STRANGE_PORT = 4444
BALANCERS = {Role.LOAD_BALANCER, Role.PUBLIC_BALANCER}
PROTOCOLS = {Protocol.TCP: "Tcp", Protocol.UDP: "Udp"}


def covers(rule, side, address):
    """Whether one side of a rule holds an address."""
    prefixes = rule.get(f"{side}AddressPrefixes") or [rule[f"{side}AddressPrefix"]]
    return any(
        prefix == "*" or (address in TAGS[prefix] if prefix in TAGS else ip_address(address) in ip_network(prefix))
        for prefix in prefixes
    )


def span(text):
    """Of a rule's text: "443", "30000-32767"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def passes(rules, direction, source, destination, protocol, port):
    """Whether a group lets a connection through: the first rule by priority that speaks of it decides."""
    for rule in sorted(rules, key=lambda rule: rule["priority"]):
        ports = rule.get("destinationPortRanges") or [rule["destinationPortRange"]]
        if (
            rule["direction"] == direction
            and rule["protocol"] in ("*", PROTOCOLS[protocol])
            and (ports == ["*"] or any(port in each for each in map(span, ports)))
            and covers(rule, "source", source)
            and covers(rule, "destination", destination)
        ):
            return rule["access"] == "Allow"
    raise AssertionError("no rule of the group speaks of it, so Azure's own would")


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
    """Role -> an address that somebody of this role has."""
    spec, plan, ranges = account.cluster.spec, account.plan, region_subnets(account.cluster.spec)
    found = {
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
        # Endpoints share a subnet, which is what rules name.
        found[Role.FILE_STORE] = found[Role.SECRET_STORE]
    if spec.control_plane.public:
        found[Role.PUBLIC_OPERATOR] = str(spec.control_plane.public.operators[0][3])
    if spec.sites:
        found[Role.ETCD_EVENTS] = str(plan.etcd["events"][0].address)
        found[Role.WORKER_AT_SITE] = str(spec.sites["sjc1"].racks["r2"][11])
        found[Role.ARTEFACT_MIRROR] = "10.9.0.5"
        found[Role.REGISTRY] = FAR
    return found


def test_what_passes_is_what_the_table_says_and_nothing_more(account, places):
    table = flows(account.cluster, account_source(account))
    wanted = set()
    for flow in table:
        # Behind the load balancer's address are API servers, and packets keep their senders' addresses.
        destination = Role.API_SERVER if flow.destination in BALANCERS else flow.destination
        source, target = places.get(flow.source), places.get(destination)
        if source and target and flow.source not in BALANCERS:
            wanted |= {(source, target, flow.protocol, edge) for pair in ranges(flow.ports) for edge in pair}
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
    everybody = sorted({*places.values(), *others})
    found = {
        (source, target, protocol, port)
        for source, target in product(everybody, everybody)
        for protocol, port in product(PROTOCOLS, ports)
        if (filter_.guarding(source) or filter_.guarding(target)) and filter_.lets(source, target, protocol, port)
    }
    named = {each for each in wanted if filter_.guarding(each[0]) or filter_.guarding(each[1])}
    # Names can't be in a rule: to a registry that has one, the way is open to everybody who may be it.
    opened = {each for each in found if registry_by_name(account) and each[3] == 5000}
    assert found - opened == named - opened
    assert {each for each in named if each[3] == 5000} <= found


def account_source(account):
    return source_of(account.cluster.spec)


def registry_by_name(account):
    return account.cluster.spec.artefacts.registry is not None


def test_members_of_one_etcd_do_not_reach_the_other(wide):
    plan, filter_ = wide.plan, Filter(wide)
    for role, other in (("main", "events"), ("events", "main")):
        for mine, theirs in product(plan.etcd[role], plan.etcd[other]):
            for port in (2379, 2380, 2381, 2382):
                assert not filter_.lets(str(mine.address), str(theirs.address), Protocol.TCP, port)


def test_the_load_balancer_s_probe_reaches_api_servers_and_nobody_else(account, places):
    filter_ = Filter(account)
    assert filter_.lets(PROBE, places[Role.API_SERVER], Protocol.TCP, 6443)
    for role, port in ((Role.ETCD_MAIN, 2379), (Role.WORKER_IN_REGION, 10250), (Role.SECRET_STORE, 443)):
        assert not filter_.lets(PROBE, places[role], Protocol.TCP, port)


def test_rules_are_as_many_as_the_flows_that_a_group_sees(account):
    """No flow is left out for want of an address but those that Azure does not filter."""
    table = flows(account.cluster, account_source(account))
    seen = {flow for flow in table if UNFILTERED.isdisjoint({flow.source, flow.destination})}
    inside = {Role.API_SERVER, Role.ETCD_MAIN, Role.ETCD_EVENTS, Role.WORKER_IN_REGION, Role.SECRET_STORE}
    inside |= {Role.FILE_STORE, Role.BUCKETS}
    wanted = sum((flow.source in inside) + (flow.destination in {*inside, *BALANCERS}) for flow in seen)
    rules = [rule for group in account.of("network:NetworkSecurityGroup") for rule in group["securityRules"]]
    assert len([rule for rule in rules if rule["access"] == "Allow"]) == wanted


def test_each_rule_speaks_of_one_guarded_subnet_so_that_one_group_may_guard_them_all(account):
    guarded = list(Filter(account).of)
    for group in account.of("network:NetworkSecurityGroup"):
        for rule in group["securityRules"]:
            side = "destination" if rule["direction"] == "Inbound" else "source"
            prefixes = rule.get(f"{side}AddressPrefixes") or [rule[f"{side}AddressPrefix"]]
            if rule["access"] == "Allow":
                assert len([subnet for subnet in guarded if ip_network(prefixes[0]).subnet_of(subnet)]) == 1
                assert all(any(ip_network(each).subnet_of(subnet) for subnet in guarded) for each in prefixes)


def test_nobody_is_let_in_from_the_internet_and_ssh_from_nowhere(account):
    for group in account.of("network:NetworkSecurityGroup"):
        for rule in group["securityRules"]:
            if (rule["direction"], rule["access"]) == ("Inbound", "Allow"):
                assert rule.get("sourceAddressPrefix") not in ("*", "Internet", "0.0.0.0/0", "VirtualNetwork")
                assert "22" not in rule["destinationPortRanges"]
            assert len(rule["description"]) <= 140
