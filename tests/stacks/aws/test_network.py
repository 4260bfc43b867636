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

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
CONNECTION = "aws:ec2/vpnConnection:VpnConnection"


def zone_of(inputs):
    return inputs.get("availabilityZone") or inputs["availabilityZoneId"]


@BOTH
def test_subnets_match_the_plan_in_their_zones(deployed):
    zones, public = zone_subnets(deployed.cluster.spec), deployed.cluster.spec.control_plane.public
    expected = {(zone.zone, str(subnet)) for zone in zones for subnet in zone.all() if public or subnet != zone.public}
    inputs = [record.inputs for record in deployed.of_type(SUBNET)]
    assert {(zone_of(subnet_inputs), subnet_inputs["cidrBlock"]) for subnet_inputs in inputs} == expected


def test_only_subnets_of_a_public_load_balancer_are_public(small, whole):
    assert not small.of_type(ASSOCIATION) and not small.of_type(TABLE)
    (table,), (internet,) = whole.of_type(TABLE), whole.of_type("aws:ec2/internetGateway:InternetGateway")
    assert table.inputs["routes"] == [{"cidrBlock": "0.0.0.0/0", "gatewayId": internet.id}]
    joined = {record.inputs["subnetId"] for record in whole.of_type(ASSOCIATION)}
    assert {record.inputs["routeTableId"] for record in whole.of_type(ASSOCIATION)} == {table.id}
    public = {record.id for record in whole.of_type(SUBNET) if record.inputs["tags"]["role"] == "public"}
    assert joined == public and len(public) == 3
    balancers = {record.inputs["internal"]: record.inputs for record in whole.of_type(BALANCER)}
    assert {mapping["subnetId"] for mapping in balancers[False]["subnetMappings"]} == public


@BOTH
def test_hosts_reach_the_internet_only_through_a_nat_gateway_in_every_zone(deployed):
    """A subnet without its own route table uses the VPC's main one."""
    (routes,), (nat,), (vpc,) = deployed.of_type(ROUTES), deployed.of_type(NAT), deployed.of_type(VPC)
    assert routes.inputs["defaultRouteTableId"] == vpc.outputs["defaultRouteTableId"]
    assert routes.inputs["routes"] == [{"cidrBlock": "0.0.0.0/0", "natGatewayId": nat.id}]
    assert (nat.inputs["availabilityMode"], nat.inputs["vpcId"]) == ("regional", vpc.id)
    # AWS refuses a gateway until the VPC has its internet gateway, and only this dependency expresses that.
    by_urn = {resource["urn"]: resource for resource in deployed.deployment["resources"]}
    (internet,) = deployed.of_type("aws:ec2/internetGateway:InternetGateway")
    assert internet.urn in by_urn[nat.urn]["dependencies"]


@BOTH
def test_the_stack_assigns_no_public_addresses(deployed):
    assert not [record for record in deployed.of_type(SUBNET) if record.inputs.get("mapPublicIpOnLaunch")]
    for record in deployed.of_type(INSTANCE):
        assert not record.inputs.get("associatePublicIpAddress")
    for record in deployed.of_type(TEMPLATE):
        assert not [
            entry for entry in record.inputs.get("networkInterfaces", ()) if entry.get("associatePublicIpAddress")
        ]
    balancers = [record.inputs for record in deployed.of_type(BALANCER)]
    mapped = {
        entry["allocationId"]
        for balancer in balancers
        for entry in balancer["subnetMappings"]
        if entry.get("allocationId")
    }
    assert {record.id for record in deployed.of_type(ADDRESS)} == mapped
    assert bool(mapped) == bool(deployed.cluster.spec.control_plane.public)


@BOTH
def test_s3_and_secrets_are_reached_through_endpoints_for_this_account_only(deployed):
    region = deployed.cluster.spec.control_plane.region
    kinds = {record.inputs["vpcEndpointType"]: record.inputs for record in deployed.of_type(ENDPOINT)}
    s3, secrets = kinds["Gateway"], kinds["Interface"]
    private = {record.id for record in deployed.of_type(ROUTES)}
    assert (s3["serviceName"], set(s3["routeTableIds"])) == (f"com.amazonaws.{region}.s3", private)
    assert (secrets["serviceName"], secrets["privateDnsEnabled"]) == (f"com.amazonaws.{region}.secretsmanager", True)
    (statement,) = json.loads(secrets["policy"])["Statement"]
    own = {"aws:PrincipalAccount": "123456789012", "aws:ResourceAccount": "123456789012"}
    assert statement["Action"] == ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"]
    assert statement["Condition"] == {"StringEquals": own}
    taken = {str(zone.balancer) for zone in zone_subnets(deployed.cluster.spec)}
    addresses = {configuration["ipv4"] for configuration in secrets["subnetConfigurations"]}
    assert len(addresses) == len(taken) and not addresses & taken


@BOTH
def test_a_machine_without_a_security_group_reaches_nothing(deployed):
    (closed,) = (record.inputs for record in deployed.of_type("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"))
    assert (closed["ingress"], closed["egress"]) == ([], [])


def test_the_api_has_its_name_in_a_zone_visible_only_in_the_vpc(small):
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
    built = set()
    for record in whole.of_type(CONNECTION):
        inputs, gateway = record.inputs, gateways[record.inputs["customerGatewayId"]]
        assert inputs["staticRoutesOnly"] is False
        for end in (1, 2):
            own = {key.removeprefix(f"tunnel{end}"): value for key, value in inputs.items() if f"tunnel{end}" in key}
            assert own["IkeVersions"] == ["ikev2"]
            assert own["Phase1EncryptionAlgorithms"] == own["Phase2EncryptionAlgorithms"] == ["AES256-GCM-16"]
            assert (own["StartupAction"], own["DpdTimeoutAction"]) == ("start", "restart")
            built.add((gateway["ipAddress"], int(gateway["bgpAsn"]), end - 1, own["InsideCidr"]))
    expected = {(str(t.peer), t.edge.asn, t.gateway_end, str(t.cloud.address.network)) for t in planned}
    assert built == expected and len(built) == 4


def test_outputs_give_routers_the_ends_of_their_own_connections(whole):
    (stack,) = (resource for resource in whole.deployment["resources"] if resource["type"] == "pulumi:pulumi:Stack")
    gateways = json.loads(stack["outputs"]["outputs"])["vpn_gateways"]
    connections = {record.urn.rpartition("::")[2]: plain(record.outputs) for record in whole.of_type(CONNECTION)}
    for tunnel in tunnels(whole.cluster):
        own = connections[f"{whole.cluster.name}-{tunnel.site}-{tunnel.router}"]
        assert (
            gateways[f"{tunnel.site}/{tunnel.router}"][tunnel.gateway_end]
            == own[f"tunnel{tunnel.gateway_end + 1}Address"]
        )
    assert len(gateways) == len(connections)


def test_keys_of_tunnels_come_from_the_configuration_and_a_router_with_a_certificate_has_none(whole):
    keys = {
        record.outputs["tags"]["Name"]: record.inputs.get(f"tunnel{end}PresharedKey")
        for record in whole.of_type(CONNECTION)
        for end in (1, 2)
    }
    assert sorted(str(getattr(key, "value", key)) for key in keys.values()) == ["None", "first.key.of.a.router"]


def test_a_routers_certificate_is_given_to_the_gateway_and_the_gateways_name_to_the_router(whole):
    gateways = {record.id: record.inputs for record in whole.of_type("aws:ec2/customerGateway:CustomerGateway")}
    vpn = whole.cluster.spec.sites["sjc1"].vpn
    arns = {gateway["deviceName"]: gateway.get("certificateArn") for gateway in gateways.values()}
    assert arns == {"sjc1-edge-1": None, "sjc1-edge-2": vpn.routers["edge-2"].certificate.arn}
    (own,) = (
        record.id
        for record in whole.of_type(CONNECTION)
        if gateways[record.inputs["customerGatewayId"]]["deviceName"] == "sjc1-edge-2"
    )
    (stack,) = (resource for resource in whole.deployment["resources"] if resource["type"] == "pulumi:pulumi:Stack")
    subject = f"C=US, ST=WA, L=Seattle, O=Amazon.com, OU=AWS, CN={own}.endpoint-"
    assert json.loads(stack["outputs"]["outputs"])["vpn_names"] == {"sjc1/edge-2": [f"{subject}0", f"{subject}1"]}


def test_routes_that_sites_announce_reach_every_private_subnet(small, whole):
    (gateway,), (routes,) = whole.of_type("aws:ec2/vpnGateway:VpnGateway"), whole.of_type(ROUTES)
    assert routes.inputs["propagatingVgws"] == [gateway.id]
    assert gateway.inputs["amazonSideAsn"] == str(tunnels(whole.cluster)[0].cloud.asn)
    assert not small.of_type(ROUTES)[0].inputs.get("propagatingVgws")
