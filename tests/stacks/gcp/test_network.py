"""Networks, firewalls, endpoints, names and tunnels, as the cloud was asked to create them."""

from __future__ import annotations

import json
from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from cluster.subnets import region_subnets
from components.flows.flow import Protocol, Role
from components.flows.table import UPSTREAM, flows
from network.vpn import tunnels
from stacks.gcp.rules import Direction, rules

PROBES = {
    Role.LOAD_BALANCER: {"130.211.0.0/22", "35.191.0.0/16"},
    Role.PUBLIC_BALANCER: {"35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"},
}
BY_IDENTITY = {
    Role.API_SERVER: lambda host: host == "api-servers",
    Role.ETCD_MAIN: lambda host: host.startswith("etcd-main"),
    Role.ETCD_EVENTS: lambda host: host.startswith("etcd-events"),
    Role.WORKER_IN_REGION: lambda host: host in ("workers", "controllers"),
}
# They are at an address that Google lets every host reach.
PAST_FIREWALLS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}


def policy(run):
    """Return the rules by name."""
    (policy_,) = run.all("RegionNetworkFirewallPolicyWithRules")
    by_name = {rule["ruleName"]: rule for rule in policy_["rules"]}
    assert len(by_name) == len(policy_["rules"])
    return by_name


def admitted(run):
    """Return (direction, reader, range, protocol, port) of everything that the firewall admits."""
    connections = set()
    for rule in policy(run).values():
        if rule["action"] != "allow":
            continue
        end = "srcIpRanges" if rule["direction"] == "INGRESS" else "destIpRanges"
        for service in rule["match"]["layer4Configs"]:
            connections |= {
                (rule["direction"], run.reader(target), range_, service["ipProtocol"], port)
                for target in rule["targetServiceAccounts"]
                for range_ in rule["match"][end]
                for text in service["ports"]
                for port in range(int(text.split("-")[0]), int(text.split("-")[-1]) + 1)
            }
    return connections


def needed(run, source=UPSTREAM):
    """Return the same according to the table of flows."""
    all_readers = {run.reader(account["email"]) for account in run.outputs_of("Account")}
    readers = {role: {host for host in all_readers if is_one(host)} for role, is_one in BY_IDENTITY.items()}
    subnets, hosts, plane = region_subnets(run.cluster.spec), run.plan.etcd, run.cluster.spec.control_plane
    main, events = ({f"{host.address}/32" for host in hosts[role]} for role in ("main", "events"))
    ranges = {
        Role.OPERATOR: set(map(str, plane.operators)),
        Role.PUBLIC_OPERATOR: set(map(str, plane.public.operators)) if plane.public else set(),
        Role.LOAD_BALANCER: {f"{run.plan.balancers[0]}/32"},
        Role.API_SERVER: {str(subnets.api_servers)},
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: {str(subnets.workers)},
        Role.WORKER_AT_SITE: {"10.8.0.0/23"},
        Role.SECRET_STORE: {f"{subnets.endpoints[1]}/32"},
        Role.CLOUD_API: {f"{subnets.endpoints[1]}/32"},
        Role.FILE_STORE: {"10.177.32.0/19"},
        Role.ARTEFACT_MIRROR: {"0.0.0.0/0"},
        Role.REGISTRY: {"0.0.0.0/0"},
    }
    connections = set()
    for flow in flows(run.cluster, source):
        if {flow.source, flow.destination} & PAST_FIREWALLS or flow.protocol is Protocol.ESP:
            continue
        probes = PROBES.get(flow.source)
        ports = [port for port in flow.ports if not probes or port == 6443]
        takers = readers.get(Role.API_SERVER if flow.destination in PROBES else flow.destination, set())
        peers = probes or ranges.get(flow.source, set())
        for port in ports:
            connections |= {("INGRESS", taker, peer, flow.protocol.value, port) for taker in takers for peer in peers}
            connections |= {
                ("EGRESS", opener, peer, flow.protocol.value, port)
                for opener in readers.get(flow.source, set())
                for peer in ranges.get(flow.destination, set())
            }
    return connections


def test_firewalls_admit_exactly_what_the_table_says_in_both_directions(run):
    assert admitted(run) == needed(run)


def test_egress_without_a_rule_is_denied_for_the_whole_network(run):
    (rule,) = (rule for rule in policy(run).values() if rule["action"] == "deny")
    services = [{"ipProtocol": "all"}]
    assert (rule["direction"], rule["match"]) == (
        "EGRESS",
        {"destIpRanges": ["0.0.0.0/0"], "layer4Configs": services},
    )
    assert "targetServiceAccounts" not in rule
    assert {other["priority"] < rule["priority"] for other in policy(run).values() if other != rule} == {True}


def test_the_rules_apply_to_the_clusters_network(run):
    (association,), (network,) = run.all("RegionNetworkFirewallPolicyAssociation"), run.outputs_of("Network")
    (policy_,) = run.all("RegionNetworkFirewallPolicyWithRules")
    assert association["firewallPolicy"] == policy_["name"]
    assert network["selfLink"].endswith(association["attachmentTarget"])


def test_a_range_in_a_rule_contains_only_the_hosts_it_stands_for(run):
    """A subnetwork of a role contains only its hosts, so its range identifies them."""
    subnets_by_reader = {}
    for machine in run.all("Instance") + run.all("RegionInstanceTemplate"):
        (interface,) = machine["networkInterfaces"]
        subnets_by_reader.setdefault(run.reader(machine["serviceAccount"]["email"]), set()).add(interface["subnetwork"])
        assert not machine.get("canIpForward")
    assert len({subnet["name"] for subnet in run.all("Subnetwork")}) == 3
    assert all(len(subnets) == 1 for subnets in subnets_by_reader.values())
    workers = {subnet for name in ("workers", "controllers") for subnet in subnets_by_reader.get(name, ())}
    assert len(workers) == 1
    assert subnets_by_reader["api-servers"].isdisjoint(workers)
    assert not [
        host for host in run.plan.hosts() if subnets_by_reader[host.name] & (subnets_by_reader["api-servers"] | workers)
    ]


def test_no_rule_admits_traffic_from_everywhere(run):
    assert not [rule for rule in policy(run).values() if "0.0.0.0/0" in rule["match"].get("srcIpRanges", ())]


def test_a_mirror_and_a_registry_at_an_address_close_the_internet(gibbon):
    inside = ArtefactSource(mirror="http://10.141.200.5:8080", sha256={}, registry="10.141.200.6:5000")
    rules_ = rules(gibbon.cluster, gibbon.plan, inside, flows(gibbon.cluster, inside))
    assert not [rule for rule in rules_ if "0.0.0.0/0" in rule.ranges]
    assert {("10.141.200.5/32",), ("10.141.200.6/32",)} <= {rule.ranges for rule in rules_}


def test_no_rule_has_more_identities_than_google_permits(gibbon):
    many = gibbon.cluster.model_copy(deep=True)
    hosts = tuple(gibbon.plan.etcd["main"][0].__class__(f"etcd-main-{n}", "z", a) for n, a in enumerate(
        list(region_subnets(many.spec).etcd.hosts())[10:24]))  # fmt: skip
    plan = gibbon.plan.__class__(**{**vars(gibbon.plan), "etcd": {"main": hosts, "events": hosts}})
    rules_ = rules(many, plan, UPSTREAM, flows(many, UPSTREAM))
    assert max(len(rule.targets) for rule in rules_) == 10
    inwards = [rule for rule in rules_ if rule.direction is Direction.IN]
    among = {
        (target, range_) for rule in inwards for target in rule.targets for range_ in rule.ranges if "etcd" in target
    }
    assert {(source.name, f"{target_.address}/32") for source in hosts for target_ in hosts} <= among
    assert len({(rule.direction, rule.name) for rule in rules_}) == len(rules_)


def test_subnets_match_the_plan_with_private_access_and_flow_logs(run):
    ranges = region_subnets(run.cluster.spec)
    by_range = {subnet["ipCidrRange"]: subnet for subnet in run.all("Subnetwork")}
    assert set(by_range) == {str(ranges.api_servers), str(ranges.etcd), str(ranges.workers)}
    assert all(subnet["privateIpGoogleAccess"] and subnet["logConfig"] for subnet in by_range.values())
    (network,) = run.all("Network")
    assert (network["mtu"], network["autoCreateSubnetworks"]) == (8896, False)


def test_only_nat_the_vpn_gateway_and_a_requested_load_balancer_are_public(run):
    requested = {"EXTERNAL"} if run.cluster.spec.control_plane.public else set()
    kinds = {item["addressType"] for item in (*run.all("Address"), *run.all("GlobalAddress"))}
    assert kinds == {"INTERNAL", *requested}
    machines = run.all("Instance") + run.all("RegionInstanceTemplate")
    assert not [row for item in machines for row in item["networkInterfaces"] if row.get("accessConfigs")]
    assert {rule["loadBalancingScheme"] for rule in run.all("ForwardingRule")} == {"INTERNAL", *requested}
    assert {bucket["publicAccessPrevention"] for bucket in run.all("Bucket")} == {"enforced"}
    assert len(run.all("RouterNat")) == 1


def test_a_public_endpoint_is_a_second_load_balancer_with_only_the_apis_port(langur):
    rules = {item["loadBalancingScheme"]: item for item in langur.outputs_of("ForwardingRule")}
    assert rules["EXTERNAL"]["ports"] == ["6443"]
    (address,) = (item for item in langur.outputs_of("Address") if item["addressType"] == "EXTERNAL")
    assert rules["EXTERNAL"]["ipAddress"] == address["address"]
    backends = {item["loadBalancingScheme"]: item for item in langur.all("RegionBackendService")}
    same = ("backends", "healthChecks", "connectionDrainingTimeoutSec")
    assert [backends["EXTERNAL"][name] for name in same] == [backends["INTERNAL"][name] for name in same]
    printed = json.loads(langur.outputs["outputs"])
    assert (printed["public_name"], printed["public_target"]) == ("api.langur.example.org", address["address"])


def test_the_range_of_public_operators_is_admitted_at_the_api_servers(langur):
    admitted_ = {
        (reader, port) for direction, reader, range_, _, port in admitted(langur) if range_ == "198.51.100.0/24"
    }
    assert admitted_ == {("api-servers", 6443)}


def test_without_a_public_endpoint_none_of_its_parts_exist(gibbon):
    assert len(gibbon.all("ForwardingRule")) == len(gibbon.all("RegionBackendService")) == 1
    assert json.loads(gibbon.outputs["outputs"])["public_target"] is None
    assert not [rule for rule in policy(gibbon).values() if "209.85.152.0/22" in rule["match"].get("srcIpRanges", ())]


def test_googles_services_are_reached_at_an_address_of_the_network_under_their_own_names(run):
    (address,), (rule,) = run.all("GlobalAddress"), run.all("GlobalForwardingRule")
    assert (address["purpose"], rule["target"]) == ("PRIVATE_SERVICE_CONNECT", "all-apis")
    inside = IPv4Network(f"{address['address']}/32")
    assert inside.subnet_of(run.cluster.spec.network.nodes)
    assert not [item for item in run.all("Subnetwork") if inside.subnet_of(IPv4Network(item["ipCidrRange"]))]
    names = {(item["name"], item["type"]): item["rrdatas"] for item in run.all("RecordSet")}
    assert names["*.googleapis.com.", "A"] == [address["address"]]


def test_the_api_has_a_name_in_a_zone_visible_only_in_the_network(run):
    names = {(item["name"], item["type"]): item["rrdatas"] for item in run.all("RecordSet")}
    assert names[f"api.{run.cluster.name}.internal.", "A"] == [str(run.plan.balancers[0])]
    assert {zone["visibility"] for zone in run.all("ManagedZone")} == {"private"}


def test_tunnels_match_the_plan_and_their_keys_are_secret(langur):
    planned_tunnels = tunnels(langur.cluster)
    peers = {record.outputs["selfLink"]: record for record in langur.records if "ExternalVpn" in record.type}
    peers |= {record.id: record for record in peers.values()}
    built = {
        (item["vpnGatewayInterface"], peers[item["peerExternalGateway"]].inputs["interfaces"][0]["ipAddress"])
        for item in langur.all("VPNTunnel")
    }
    assert built == {(tunnel.gateway_end, str(tunnel.peer)) for tunnel in planned_tunnels}
    sessions = {(item["ipAddress"], item["peerIpAddress"], item["peerAsn"]) for item in langur.all("RouterPeer")}
    assert sessions == {(str(t.cloud.address.ip), str(t.edge.address.ip), t.edge.asn) for t in planned_tunnels}
    assert {item["ipRange"] for item in langur.all("RouterInterface")} == {
        str(t.cloud.address) for t in planned_tunnels
    }
    keys = [item["inputs"]["sharedSecret"] for item in langur.resources if item["type"].endswith(":VPNTunnel")]
    assert len(keys) == len(planned_tunnels)
    assert all("ciphertext" in key for key in keys)
    announced = {row["range"] for item in langur.all("RouterPeer") for row in item["advertisedIpRanges"]}
    assert announced == {"10.177.0.0/16"}


def test_routers_get_the_addresses_of_the_gateways_ends(langur):
    (gateway,) = langur.outputs_of("HaVpnGateway")
    ends = [
        interface["ipAddress"] for interface in sorted(gateway["vpnInterfaces"], key=lambda interface: interface["id"])
    ]
    routers = {f"{tunnel.site}/{tunnel.router}" for tunnel in tunnels(langur.cluster)}
    assert json.loads(langur.outputs["outputs"])["vpn_gateways"] == dict.fromkeys(routers, ends)


def test_only_routes_to_a_sites_racks_are_accepted_from_its_routers(langur):
    (policy,) = langur.all("RouterRoutePolicy")
    (term,) = policy["terms"]
    assert term["match"]["expression"] == "!destination.inAnyRange([prefix('10.8.0.0/23').orLonger()])"
    assert [action["expression"] for action in term["actions"]] == ["drop()"]
    assert all(peer["importPolicies"] == [policy["name"]] for peer in langur.all("RouterPeer"))


@pytest.mark.parametrize("kind", ["HaVpnGateway", "VPNTunnel", "RouterPeer", "RouterRoutePolicy"])
def test_without_a_site_there_is_no_gateway(gibbon, kind):
    assert gibbon.all(kind) == []
