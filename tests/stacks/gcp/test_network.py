"""Networks, firewalls, endpoints, names and tunnels, as the cloud was asked for them."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from cluster.subnets import region_subnets
from flows.flow import Protocol, Role
from flows.table import UPSTREAM, flows
from network.vpn import tunnels
from stacks.gcp.rules import rules

PROBES = {"130.211.0.0/22", "35.191.0.0/16"}
BY_IDENTITY = {
    Role.API_SERVER: lambda host: host == "api-servers",
    Role.ETCD_MAIN: lambda host: host.startswith("etcd-main"),
    Role.ETCD_EVENTS: lambda host: host.startswith("etcd-events"),
    Role.WORKER_IN_REGION: lambda host: host == "workers",
}
# They are at an address that Google lets every host reach.
PAST_FIREWALLS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}


def allowed(run):
    """(direction, whose host, peer, protocol, port) of all that the firewalls let through."""
    found = set()
    for rule in run.all("Firewall"):
        if rule.get("denies"):
            continue
        peers = [run.reader(email) for email in rule.get("sourceServiceAccounts", ())]
        peers += rule.get("sourceRanges", []) + rule.get("destinationRanges", [])
        for service in rule["allows"]:
            found |= {
                (rule["direction"], run.reader(target), peer, service["protocol"], int(port))
                for target in rule["targetServiceAccounts"]
                for peer in peers
                for port in service["ports"]
            }
    return found


def needed(run, source=UPSTREAM):
    """The same by the table of flows."""
    everyone = {run.reader(account["email"]) for account in run.outputs_of("Account")}
    readers = {role: {host for host in everyone if is_one(host)} for role, is_one in BY_IDENTITY.items()}
    subnets, hosts = region_subnets(run.cluster.spec), run.plan.etcd
    main, events = ({f"{host.address}/32" for host in hosts[role]} for role in ("main", "events"))
    ranges = {
        Role.OPERATOR: set(map(str, run.cluster.spec.control_plane.operators)),
        Role.LOAD_BALANCER: {f"{run.plan.balancers[0]}/32"},
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: {str(subnets.workers)},
        Role.WORKER_AT_SITE: {"10.8.0.0/23"},
        Role.SECRET_STORE: {f"{subnets.endpoints[1]}/32"},
        Role.ARTEFACT_MIRROR: {"0.0.0.0/0"},
        Role.REGISTRY: {"0.0.0.0/0"},
    }
    found = set()
    for flow in flows(run.cluster, source):
        if {flow.source, flow.destination} & PAST_FIREWALLS or flow.protocol is Protocol.ESP:
            continue
        probes = flow.source is Role.LOAD_BALANCER
        ports = [port for port in flow.ports if not probes or port == 6443]
        takers = readers.get(Role.API_SERVER if flow.destination is Role.LOAD_BALANCER else flow.destination, set())
        peers = PROBES if probes else readers.get(flow.source) or ranges.get(flow.source, set())
        for port in ports:
            found |= {("INGRESS", taker, peer, flow.protocol.value, port) for taker in takers for peer in peers}
            found |= {
                ("EGRESS", opener, peer, flow.protocol.value, port)
                for opener in readers.get(flow.source, set())
                for peer in ranges.get(flow.destination, set())
            }
    return found


def test_firewalls_let_through_what_the_table_says_in_both_directions_and_nothing_else(run):
    assert allowed(run) == needed(run)


def test_all_that_no_rule_allows_out_is_refused_for_the_whole_network(run):
    (rule,) = (rule for rule in run.all("Firewall") if rule.get("denies"))
    assert (rule["direction"], rule["destinationRanges"], rule["denies"]) == (
        "EGRESS",
        ["0.0.0.0/0"],
        [{"protocol": "all"}],
    )
    assert "targetServiceAccounts" not in rule
    assert {other.get("priority", 1000) < rule["priority"] for other in run.all("Firewall") if other != rule} == {True}


def test_nobody_comes_in_from_everywhere(run):
    assert not [rule for rule in run.all("Firewall") if "0.0.0.0/0" in rule.get("sourceRanges", ())]


def test_a_mirror_and_a_registry_at_an_address_close_the_internet(gibbon):
    inside = ArtefactSource(mirror="http://10.141.200.5:8080", sha256={}, registry="10.141.200.6:5000")
    made = rules(gibbon.cluster, gibbon.plan, inside, flows(gibbon.cluster, inside))
    assert not [rule for rule in made if "0.0.0.0/0" in rule.ranges]
    assert {("10.141.200.5/32",), ("10.141.200.6/32",)} <= {rule.ranges for rule in made}


def test_no_rule_has_more_identities_than_google_takes(gibbon):
    many = gibbon.cluster.model_copy(deep=True)
    hosts = tuple(gibbon.plan.etcd["main"][0].__class__(f"etcd-main-{n}", "z", a) for n, a in enumerate(
        list(region_subnets(many.spec).etcd.hosts())[10:24]))  # fmt: skip
    plan = gibbon.plan.__class__(**{**vars(gibbon.plan), "etcd": {"main": hosts, "events": hosts}})
    made = rules(many, plan, UPSTREAM, flows(many, UPSTREAM))
    assert max(len(rule.targets) for rule in made) == max(len(rule.peers) for rule in made) == 10
    among = {(target, peer) for rule in made for target in rule.targets for peer in rule.peers if "etcd" in peer}
    assert among == {(one.name, other.name) for one in hosts for other in hosts}
    assert len({(rule.direction, rule.name) for rule in made}) == len(made)


def test_subnets_are_those_of_the_plan_with_private_access_and_flow_logs(run):
    ranges = region_subnets(run.cluster.spec)
    found = {each["ipCidrRange"]: each for each in run.all("Subnetwork")}
    assert set(found) == {str(ranges.api_servers), str(ranges.etcd), str(ranges.workers)}
    assert all(each["privateIpGoogleAccess"] and each["logConfig"] for each in found.values())
    (network,) = run.all("Network")
    assert (network["mtu"], network["autoCreateSubnetworks"]) == (8896, False)


def test_nothing_but_nat_and_the_vpn_gateway_is_public(run):
    assert {each["addressType"] for each in (*run.all("Address"), *run.all("GlobalAddress"))} == {"INTERNAL"}
    machines = run.all("Instance") + run.all("RegionInstanceTemplate")
    assert not [row for each in machines for row in each["networkInterfaces"] if row.get("accessConfigs")]
    assert {rule["loadBalancingScheme"] for rule in run.all("ForwardingRule")} == {"INTERNAL"}
    assert {bucket["publicAccessPrevention"] for bucket in run.all("Bucket")} == {"enforced"}
    assert len(run.all("RouterNat")) == 1


def test_google_s_services_are_reached_at_an_address_of_the_network_by_their_own_names(run):
    (address,), (rule,) = run.all("GlobalAddress"), run.all("GlobalForwardingRule")
    assert (address["purpose"], rule["target"]) == ("PRIVATE_SERVICE_CONNECT", "all-apis")
    inside = IPv4Network(f"{address['address']}/32")
    assert inside.subnet_of(run.cluster.spec.network.nodes)
    assert not [each for each in run.all("Subnetwork") if inside.subnet_of(IPv4Network(each["ipCidrRange"]))]
    names = {(each["name"], each["type"]): each["rrdatas"] for each in run.all("RecordSet")}
    assert names["googleapis.com.", "A"] == [address["address"]]
    assert names["*.googleapis.com.", "CNAME"] == ["googleapis.com."]


def test_the_api_has_a_name_in_a_zone_that_only_the_network_sees(run):
    names = {(each["name"], each["type"]): each["rrdatas"] for each in run.all("RecordSet")}
    assert names[f"api.{run.cluster.name}.internal.", "A"] == [str(run.plan.balancers[0])]
    assert {zone["visibility"] for zone in run.all("ManagedZone")} == {"private"}


def test_tunnels_are_those_of_the_plan_and_keep_their_keys_secret(langur):
    wanted = tunnels(langur.cluster)
    peers = {record.outputs["selfLink"]: record for record in langur.records if "ExternalVpn" in record.type}
    peers |= {record.id: record for record in peers.values()}
    made = {
        (each["vpnGatewayInterface"], peers[each["peerExternalGateway"]].inputs["interfaces"][0]["ipAddress"])
        for each in langur.all("VPNTunnel")
    }
    assert made == {(tunnel.gateway_end, str(tunnel.peer)) for tunnel in wanted}
    sessions = {(each["ipAddress"], each["peerIpAddress"], each["peerAsn"]) for each in langur.all("RouterPeer")}
    assert sessions == {(str(t.cloud.address.ip), str(t.edge.address.ip), t.edge.asn) for t in wanted}
    assert {each["ipRange"] for each in langur.all("RouterInterface")} == {str(t.cloud.address) for t in wanted}
    keys = [each["inputs"]["sharedSecret"] for each in langur.resources if each["type"].endswith(":VPNTunnel")]
    assert len(keys) == len(wanted)
    assert all("ciphertext" in key for key in keys)
    announced = {row["range"] for each in langur.all("RouterPeer") for row in each["advertisedIpRanges"]}
    assert announced == {"10.177.0.0/16"}


def test_a_site_s_routers_lead_to_its_racks_alone(langur):
    (policy,) = langur.all("RouterRoutePolicy")
    (term,) = policy["terms"]
    assert term["match"]["expression"] == "!destination.inAnyRange([prefix('10.8.0.0/23').orLonger()])"
    assert [action["expression"] for action in term["actions"]] == ["drop()"]
    assert all(each["importPolicies"] == [policy["name"]] for each in langur.all("RouterPeer"))


@pytest.mark.parametrize("kind", ["HaVpnGateway", "VPNTunnel", "RouterPeer", "RouterRoutePolicy"])
def test_without_a_site_there_is_no_gateway(gibbon, kind):
    assert gibbon.all(kind) == []
