"""The VPC and its endpoints under the real engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from network.subnets import zone_subnets

ROOT = Path(__file__).resolve().parents[3]
SUBNET = "aws:ec2/subnet:Subnet"
ROUTES = "aws:ec2/routeTable:RouteTable"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
NAT = "aws:ec2/natGateway:NatGateway"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"


def test_a_network_is_planned_built_found_unchanged_and_taken_away(account, lemur, declare):
    account.program = lambda: declare(lemur, flow_logs="arn:aws:s3:::lemur-flow-logs")
    planned = account.preview()
    assert set(planned) == {"create"}
    assert account.up() == planned
    assert set(account.preview()) == {"same"}
    (log,) = account.world.of_type("aws:ec2/flowLog:FlowLog")
    assert (log.inputs["logDestination"], log.inputs["trafficType"]) == ("arn:aws:s3:::lemur-flow-logs", "ALL")
    account.stack.destroy()
    assert list(account.world) == []


def test_more_zones_members_and_sites_replace_nothing(account, lemur, build, declare):
    spec = lemur.spec.model_dump(mode="json")
    fewer = {**spec, "control_plane": {**spec["control_plane"], "zones": ["us-east-1a", "us-east-1b"]}}
    account.program = lambda: declare(build(fewer, {}))
    account.up()
    members = {"etcd": {"main": {**spec["etcd"]["main"], "members": 5}, "events": spec["etcd"]["events"]}}
    site = {"sites": {"sjc1": {"racks": {"r1": "10.99.1.0/24"}}}}
    pools = {"pools": {"gpu": {"site": "sjc1", "hosts": "hosts.yaml"}, **spec["pools"]}}
    account.program = lambda: declare(build({**spec, **members, **site, **pools}, {}))
    assert account.replaced() == set()
    assert account.preview()["create"] > 10


@pytest.mark.parametrize("name", ["lemur", "jackal"])
def test_subnets_are_those_of_the_plan_in_their_zones(networks, name):
    cluster, account = networks[name]
    wanted = {(zone.zone, str(subnet)) for zone in zone_subnets(cluster) for subnet in zone.all()}
    inputs = [record.inputs for record in account.world.of_type(SUBNET)]
    made = {(each.get("availabilityZone") or each["availabilityZoneId"], each["cidrBlock"]) for each in inputs}
    assert made == wanted
    assert not [each for each in inputs if each.get("mapPublicIpOnLaunch")]


def test_hosts_reach_the_internet_by_the_nat_gateway_of_their_own_zone_and_by_nothing_else(networks):
    cluster, account = networks["lemur"]
    world = account.world
    subnets = {record.id: record.inputs for record in world.of_type(SUBNET)}
    zones = {zone.zone: zone for zone in zone_subnets(cluster)}
    nats = {record.id: subnets[record.inputs["subnetId"]]["cidrBlock"] for record in world.of_type(NAT)}
    routes = {record.id: record.inputs["routes"] for record in world.of_type(ROUTES)}
    joined = {record.inputs["subnetId"]: routes[record.inputs["routeTableId"]] for record in world.of_type(ASSOCIATION)}
    assert set(joined) == set(subnets)
    for id_, subnet in subnets.items():
        zone = zones[subnet.get("availabilityZone") or subnet["availabilityZoneId"]]
        (route,) = joined[id_]
        assert route["cidrBlock"] == "0.0.0.0/0"
        if subnet["cidrBlock"] == str(zone.public):
            assert route["gatewayId"].startswith("igw-")
        else:
            assert nats[route["natGatewayId"]] == str(zone.public)
    assert len(world.of_type("aws:ec2/eip:Eip")) == len(nats) == len(zones)


def test_s3_and_secrets_are_reached_inside_and_no_other_account_s_secrets_are(networks):
    cluster, account = networks["lemur"]
    s3, secrets = (account.called(f"lemur-{name}").inputs for name in ("s3", "secrets"))
    private = {record.id for record in account.world.of_type(ROUTES) if "natGatewayId" in record.inputs["routes"][0]}
    assert (s3["serviceName"], set(s3["routeTableIds"])) == ("com.amazonaws.us-east-1.s3", private)
    assert (secrets["serviceName"], secrets["privateDnsEnabled"]) == ("com.amazonaws.us-east-1.secretsmanager", True)
    assert len(secrets["subnetIds"]) == len(cluster.spec.control_plane.zones)
    (statement,) = json.loads(secrets["policy"])["Statement"]
    own = {"aws:PrincipalAccount": "123456789012", "aws:ResourceAccount": "123456789012"}
    assert (statement["Action"], statement["Condition"]) == ("secretsmanager:GetSecretValue", {"StringEquals": own})


def test_what_is_started_without_a_group_reaches_nothing(networks):
    _, account = networks["lemur"]
    (closed,) = (record.inputs for record in account.world.of_type("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"))
    assert (closed["ingress"], closed["egress"]) == ([], [])


@pytest.mark.parametrize("name", ["lemur", "jackal"])
def test_everything_is_tagged_with_its_cluster_and_role(networks, name):
    _, account = networks[name]
    for record in account.world:
        if record.type != ASSOCIATION:  # AWS has no tags on it
            found = record.outputs["tagsAll"]
            assert (found["menagerie"], found["cluster"]) == ("true", name), record.urn
            assert found["role"] and found["Name"].startswith(f"{name}-"), record.urn


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("stacks.program", ("pulumi_aws", "pulumi_azure_native", "pulumi_gcp")),
        ("stacks.aws.endpoints", ("pulumi_azure_native", "pulumi_gcp", "lab")),
    ],
)
def test_no_cloud_is_imported_but_the_cluster_s_own(module, absent):
    program = f"import sys, {module}; sys.exit(str([name for name in {absent} if name in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""
