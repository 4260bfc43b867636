"""The VPC, its endpoints, and the tunnels to sites."""

from __future__ import annotations

import json

import pytest

from cluster.subnets import zone_subnets
from network.vpn import tunnels
from sandbox.simcloud.values import plain
from tests.stacks.aws.tokens import (
    ADDRESS,
    ASSOCIATION,
    BALANCER,
    ENDPOINT,
    INSTANCE,
    NAT,
    ROUTES,
    SUBNET,
    TABLE,
    TEMPLATE,
    VPC,
)

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)
CONNECTION = "aws:ec2/vpnConnection:VpnConnection"


def zone_of(inputs):
    return inputs.get("availabilityZone") or inputs["availabilityZoneId"]


@BOTH
def test_subnets_are_those_of_the_plan_in_their_zones(made):
    zones, public = zone_subnets(made.cluster.spec), made.cluster.spec.control_plane.public
    wanted = {(zone.zone, str(subnet)) for zone in zones for subnet in zone.all() if public or subnet != zone.public}
    inputs = [record.inputs for record in made.of_type(SUBNET)]
    assert {(zone_of(each), each["cidrBlock"]) for each in inputs} == wanted


def test_no_subnet_is_public_but_those_of_a_public_load_balancer(small, whole):
    assert not small.of_type(ASSOCIATION) and not small.of_type(TABLE)
    (table,), (internet,) = whole.of_type(TABLE), whole.of_type("aws:ec2/internetGateway:InternetGateway")
    assert table.inputs["routes"] == [{"cidrBlock": "0.0.0.0/0", "gatewayId": internet.id}]
    joined = {record.inputs["subnetId"] for record in whole.of_type(ASSOCIATION)}
    assert {record.inputs["routeTableId"] for record in whole.of_type(ASSOCIATION)} == {table.id}
    public = {record.id for record in whole.of_type(SUBNET) if record.inputs["tags"]["role"] == "public"}
    assert joined == public and len(public) == 3
    balancers = {record.inputs["internal"]: record.inputs for record in whole.of_type(BALANCER)}
    assert {one["subnetId"] for one in balancers[False]["subnetMappings"]} == public


@BOTH
def test_hosts_reach_the_internet_by_a_nat_gateway_in_every_zone_and_by_nothing_else(made):
    """A subnet without a route table of its own has the VPC's main one."""
    (routes,), (nat,), (vpc,) = made.of_type(ROUTES), made.of_type(NAT), made.of_type(VPC)
    assert routes.inputs["defaultRouteTableId"] == vpc.outputs["defaultRouteTableId"]
    assert routes.inputs["routes"] == [{"cidrBlock": "0.0.0.0/0", "natGatewayId": nat.id}]
    assert (nat.inputs["availabilityMode"], nat.inputs["vpcId"]) == ("regional", vpc.id)
    # AWS refuses one before the VPC has its internet gateway, and nothing but this says so.
    known = {resource["urn"]: resource for resource in made.deployment["resources"]}
    (internet,) = made.of_type("aws:ec2/internetGateway:InternetGateway")
    assert internet.urn in known[nat.urn]["dependencies"]


@BOTH
def test_nothing_has_a_public_address_that_the_stack_gives_it(made):
    assert not [record for record in made.of_type(SUBNET) if record.inputs.get("mapPublicIpOnLaunch")]
    for record in made.of_type(INSTANCE):
        assert not record.inputs.get("associatePublicIpAddress")
    for record in made.of_type(TEMPLATE):
        assert not [one for one in record.inputs.get("networkInterfaces", ()) if one.get("associatePublicIpAddress")]
    balancers = [record.inputs for record in made.of_type(BALANCER)]
    mapped = {one["allocationId"] for each in balancers for one in each["subnetMappings"] if one.get("allocationId")}
    assert {record.id for record in made.of_type(ADDRESS)} == mapped
    assert bool(mapped) == bool(made.cluster.spec.control_plane.public)


@BOTH
def test_s3_and_secrets_are_reached_inside_and_no_other_account_s_secrets_are(made):
    region = made.cluster.spec.control_plane.region
    kinds = {record.inputs["vpcEndpointType"]: record.inputs for record in made.of_type(ENDPOINT)}
    s3, secrets = kinds["Gateway"], kinds["Interface"]
    private = {record.id for record in made.of_type(ROUTES)}
    assert (s3["serviceName"], set(s3["routeTableIds"])) == (f"com.amazonaws.{region}.s3", private)
    assert (secrets["serviceName"], secrets["privateDnsEnabled"]) == (f"com.amazonaws.{region}.secretsmanager", True)
    (statement,) = json.loads(secrets["policy"])["Statement"]
    own = {"aws:PrincipalAccount": "123456789012", "aws:ResourceAccount": "123456789012"}
    assert statement["Action"] == ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"]
    assert statement["Condition"] == {"StringEquals": own}
    taken = {str(zone.balancer) for zone in zone_subnets(made.cluster.spec)}
    addresses = {each["ipv4"] for each in secrets["subnetConfigurations"]}
    assert len(addresses) == len(taken) and not addresses & taken


@BOTH
def test_what_is_started_without_a_group_reaches_nothing(made):
    (closed,) = (record.inputs for record in made.of_type("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"))
    assert (closed["ingress"], closed["egress"]) == ([], [])


def test_the_api_has_its_name_in_a_zone_that_the_vpc_alone_asks(small):
    (zone,) = small.of_type("aws:route53/zone:Zone")
    (record,) = small.of_type("aws:route53/record:Record")
    (vpc,) = small.of_type(VPC)
    (balancer,) = small.of_type("aws:lb/loadBalancer:LoadBalancer")
    assert (zone.inputs["name"], zone.inputs["vpcs"]) == (
        "small.internal",
        [{"vpcId": vpc.id, "vpcRegion": "eu-central-1"}],
    )
    (alias,) = record.inputs["aliases"]
    assert (record.inputs["name"], alias["name"]) == (small.plan.endpoint, balancer.outputs["dnsName"])
    assert not small.of_type(CONNECTION)


def test_every_router_has_the_two_tunnels_of_the_plan_with_one_cipher_and_ikev2(whole):
    gateways = {record.id: record.inputs for record in whole.of_type("aws:ec2/customerGateway:CustomerGateway")}
    planned = tunnels(whole.cluster)
    found = set()
    for record in whole.of_type(CONNECTION):
        inputs, gateway = record.inputs, gateways[record.inputs["customerGatewayId"]]
        assert inputs["staticRoutesOnly"] is False
        for end in (1, 2):
            own = {key.removeprefix(f"tunnel{end}"): value for key, value in inputs.items() if f"tunnel{end}" in key}
            assert own["IkeVersions"] == ["ikev2"]
            assert own["Phase1EncryptionAlgorithms"] == own["Phase2EncryptionAlgorithms"] == ["AES256-GCM-16"]
            assert (own["StartupAction"], own["DpdTimeoutAction"]) == ("start", "restart")
            found.add((gateway["ipAddress"], int(gateway["bgpAsn"]), end - 1, own["InsideCidr"]))
    wanted = {(str(t.peer), t.edge.asn, t.gateway_end, str(t.cloud.address.network)) for t in planned}
    assert found == wanted and len(found) == 4


def test_routers_are_told_where_the_ends_of_their_own_connections_are(whole):
    (stack,) = (each for each in whole.deployment["resources"] if each["type"] == "pulumi:pulumi:Stack")
    told = json.loads(stack["outputs"]["outputs"])["vpn_gateways"]
    connections = {record.urn.rpartition("::")[2]: plain(record.outputs) for record in whole.of_type(CONNECTION)}
    for tunnel in tunnels(whole.cluster):
        own = connections[f"{whole.cluster.name}-{tunnel.site}-{tunnel.router}"]
        assert (
            told[f"{tunnel.site}/{tunnel.router}"][tunnel.gateway_end] == own[f"tunnel{tunnel.gateway_end + 1}Address"]
        )
    assert len(told) == len(connections)


def test_keys_of_tunnels_come_from_the_configuration_and_a_router_with_a_certificate_has_none(whole):
    keys = {
        record.outputs["tags"]["Name"]: record.inputs.get(f"tunnel{end}PresharedKey")
        for record in whole.of_type(CONNECTION)
        for end in (1, 2)
    }
    assert sorted(str(getattr(key, "value", key)) for key in keys.values()) == ["None", "first.key.of.a.router"]


def test_a_router_s_certificate_is_named_to_the_gateway_and_the_gateway_s_to_the_router(whole):
    gateways = {record.id: record.inputs for record in whole.of_type("aws:ec2/customerGateway:CustomerGateway")}
    vpn = whole.cluster.spec.sites["sjc1"].vpn
    arns = {gateway["deviceName"]: gateway.get("certificateArn") for gateway in gateways.values()}
    assert arns == {"sjc1-edge-1": None, "sjc1-edge-2": vpn.routers["edge-2"].certificate.arn}
    (own,) = (
        record.id
        for record in whole.of_type(CONNECTION)
        if gateways[record.inputs["customerGatewayId"]]["deviceName"] == "sjc1-edge-2"
    )
    (stack,) = (each for each in whole.deployment["resources"] if each["type"] == "pulumi:pulumi:Stack")
    subject = f"C=US, ST=WA, L=Seattle, O=Amazon.com, OU=AWS, CN={own}.endpoint-"
    assert json.loads(stack["outputs"]["outputs"])["vpn_names"] == {"sjc1/edge-2": [f"{subject}0", f"{subject}1"]}


def test_what_sites_announce_is_routed_from_every_private_subnet(small, whole):
    (gateway,), (routes,) = whole.of_type("aws:ec2/vpnGateway:VpnGateway"), whole.of_type(ROUTES)
    assert routes.inputs["propagatingVgws"] == [gateway.id]
    assert gateway.inputs["amazonSideAsn"] == str(tunnels(whole.cluster)[0].cloud.asn)
    assert not small.of_type(ROUTES)[0].inputs.get("propagatingVgws")
