"""API servers, members of etcd and workers: where they are, what they are created from, and who can reach them."""

from __future__ import annotations

import base64
import json

import pytest

from cluster.pools import Placement
from cluster.subnets import zone_subnets
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from etcd.members import members
from network.addresses import ROLES
from stacks.aws.etcd import disk_of
from stacks.aws.interfaces import cards
from stacks.aws.workers import autoscaler_tags, refuse_impossible
from tests.stacks.aws.tokens import (
    ADDRESS,
    ATTACHMENT,
    BALANCER,
    INSTANCE,
    KEY,
    LISTENER,
    PLACEMENT,
    SCALING,
    SUBNET,
    TARGETS,
    TEMPLATE,
    VOLUME,
)

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)


def user_data(deployed):
    """Return the user data of every machine and template, in clear, by URN."""
    texts = {record.urn: record.inputs["userData"] for record in deployed.of_type(INSTANCE)}
    return texts | {
        record.urn: base64.b64decode(record.inputs["userData"]).decode() for record in deployed.of_type(TEMPLATE)
    }


def pool_of(deployed, name):
    """Return the group of a pool and its template."""
    template = deployed.tagged(TEMPLATE, f"workers-{name}")
    (group,) = (
        scaling_group
        for scaling_group in deployed.of_type(SCALING)
        if scaling_group.inputs["launchTemplate"]["id"] == template.id
    )
    return group.inputs, template.inputs


def api_servers(deployed):
    template = deployed.tagged(TEMPLATE, "api-servers")
    (group,) = (
        scaling_group
        for scaling_group in deployed.of_type(SCALING)
        if scaling_group.inputs["launchTemplate"]["id"] == template.id
    )
    return group.inputs, template.inputs


def group_tags(group):
    return {tag["key"]: tag["value"] for tag in group["tags"]}


@BOTH
def test_user_data_fits_and_contains_no_secret(deployed):
    for urn, text in user_data(deployed).items():
        assert len(text.encode()) <= 16384, urn
        assert "PRIVATE KEY" not in text
        assert "payload-" in text


@BOTH
def test_every_machine_requires_a_token_has_an_encrypted_disk_and_no_key_pair(deployed):
    (key,) = deployed.of_type(KEY)
    disks = [record.inputs["rootBlockDevice"] for record in deployed.of_type(INSTANCE)]
    disks += [record.inputs["blockDeviceMappings"][0]["ebs"] for record in deployed.of_type(TEMPLATE)]
    assert all(str(disk["encrypted"]).lower() == "true" for disk in disks)
    assert {disk["kmsKeyId"] for disk in disks} == {key.outputs["arn"]}
    for record in (*deployed.of_type(INSTANCE), *deployed.of_type(TEMPLATE)):
        assert record.inputs["metadataOptions"]["httpTokens"] == "required"
        assert record.inputs["metadataOptions"]["httpPutResponseHopLimit"] == 1
        assert "keyName" not in record.inputs


@BOTH
def test_machines_of_a_template_and_their_parts_are_tagged(deployed):
    for record in deployed.of_type(TEMPLATE):
        kinds = {
            specification["resourceType"]: specification["tags"] for specification in record.inputs["tagSpecifications"]
        }
        assert set(kinds) == {"instance", "volume", "network-interface"}
        assert all(tags["cluster"] == deployed.cluster.name for tags in kinds.values())


@BOTH
def test_the_load_balancer_is_internal_and_has_the_plans_address_in_each_zone(deployed):
    (balancer,) = (record.inputs for record in deployed.of_type(BALANCER) if record.inputs["internal"])
    subnets = {record.id: record.inputs["cidrBlock"] for record in deployed.of_type(SUBNET)}
    placed = {(subnets[mapping["subnetId"]], mapping["privateIpv4Address"]) for mapping in balancer["subnetMappings"]}
    assert placed == {(str(zone.api_servers), str(zone.balancer)) for zone in zone_subnets(deployed.cluster.spec)}
    assert {address for _, address in placed} == set(map(str, deployed.plan.balancers))
    assert (balancer["internal"], balancer["enableDeletionProtection"]) == (True, True)
    assert balancer["enableCrossZoneLoadBalancing"] is True


@BOTH
def test_both_ports_are_probed_at_the_api_server_without_etcd_events(deployed):
    targets = {record.id: record.inputs for record in deployed.of_type(TARGETS)}
    inside = {record.id: record.inputs["internal"] for record in deployed.of_type(BALANCER)}
    ports = {}
    for record in deployed.of_type(LISTENER):
        (action,) = record.inputs["defaultActions"]
        ports[inside[record.inputs["loadBalancerArn"]], record.inputs["port"]] = targets[action["targetGroupArn"]]
    outside = {(False, API_PORT)} if deployed.cluster.spec.control_plane.public else set()
    assert set(ports) == {(True, API_PORT), (True, KONNECTIVITY_PORT)} | outside
    assert len({id(target) for target in ports.values()}) == len(targets) == len(ports)
    for (_, port), target in ports.items():
        check = target["healthCheck"]
        assert (target["port"], target["protocol"], check["protocol"]) == (port, "TCP", "HTTPS")
        assert (check["port"], check["path"]) == (str(API_PORT), probe_path())
        assert "exclude=etcd-override-0" in check["path"]
        assert (check["interval"], check["healthyThreshold"], check["unhealthyThreshold"]) == (10, 2, 2)


def test_a_public_endpoint_has_an_address_per_zone_which_up_prints(small, whole):
    addresses = {record.outputs["publicIp"] for record in whole.of_type(ADDRESS)}
    assert len(addresses) == 3
    printed = json.loads(outputs_of(whole)["outputs"])
    assert set(printed["public_target"].split(", ")) == addresses
    assert printed["public_name"] == "api.kudu.example.org"
    assert json.loads(outputs_of(small)["outputs"])["public_target"] is None
    (balancer,) = (record.inputs for record in whole.of_type(BALANCER) if not record.inputs["internal"])
    assert (balancer["enableDeletionProtection"], balancer["enableCrossZoneLoadBalancing"]) == (True, True)
    (inside,) = (record.inputs for record in whole.of_type(BALANCER) if record.inputs["internal"])
    assert not set(balancer["securityGroups"]) & set(inside["securityGroups"])


def test_outputs_tell_operators_how_long_buckets_are_locked(small):
    buckets = json.loads(outputs_of(small)["outputs"])["buckets"]
    assert {use: entry["locked_days"] for use, entry in buckets.items()} == {
        "records": 0,
        "audit-logs": 30,
        "backups": 14,
    }


def outputs_of(deployed):
    """Return the outputs of the stack."""
    (stack,) = (resource for resource in deployed.deployment["resources"] if resource["type"] == "pulumi:pulumi:Stack")
    return stack["outputs"]


@pytest.mark.parametrize(("deployed", "most"), [("small", 150), ("whole", 134)], indirect=["deployed"])
def test_api_servers_roll_with_one_surplus_host_and_are_replaced_when_the_probe_fails(deployed, most):
    group, _ = api_servers(deployed)
    count = deployed.cluster.spec.control_plane.api_servers
    assert (group["minSize"], group["maxSize"], group["healthCheckType"]) == (count, count, "ELB")
    preferences = group["instanceRefresh"]["preferences"]
    assert (preferences["minHealthyPercentage"], preferences["maxHealthyPercentage"]) == (100, most)
    assert int(count * most / 100) == count + 1
    assert set(group["targetGroupArns"]) == {record.id for record in deployed.of_type(TARGETS)}
    subnets = {record.id: record.inputs["cidrBlock"] for record in deployed.of_type(SUBNET)}
    expected = {str(zone.api_servers) for zone in zone_subnets(deployed.cluster.spec)}
    assert {subnets[id_] for id_ in group["vpcZoneIdentifiers"]} == expected


def test_groups_resolve_the_image_and_members_get_its_id(small, whole):
    _, template = api_servers(small)
    assert template["imageId"] == "resolve:ssm:/aws/service/debian/release/13/latest/amd64"
    assert all(record.inputs["ami"].startswith("ami-") for record in small.of_type(INSTANCE))
    assert api_servers(whole)[1]["imageId"] == "ami-0fedcba9876543210"
    assert {record.inputs["ami"] for record in whole.of_type(INSTANCE)} == {"ami-0fedcba9876543210"}
    assert pool_of(whole, "gpu")[1]["imageId"] == "ami-0123456789abcdef0"


@BOTH
def test_a_group_has_the_name_of_its_template(deployed):
    names = {record.id: record.urn.rpartition("::")[2] for record in deployed.of_type(TEMPLATE)}
    for group in deployed.of_type(SCALING):
        assert group.urn.endswith(f"::{names[group.inputs['launchTemplate']['id']]}")
        assert group.inputs["launchTemplate"]["version"] == "1"


@BOTH
def test_members_have_the_zones_and_addresses_of_the_plan(deployed):
    subnets = {record.id: record for record in deployed.of_type(SUBNET)}
    placed = set()
    for record in deployed.of_type(INSTANCE):
        subnet = subnets[record.inputs["subnetId"]].inputs
        zone = subnet.get("availabilityZone") or subnet["availabilityZoneId"]
        placed.add(
            (record.inputs["tags"]["Name"].removeprefix(deployed.cluster.name)[1:], zone, record.inputs["privateIp"])
        )
    expected = {
        (f"etcd-{role}-{host.name}", host.zone, str(host.address))
        for role in reversed(ROLES)
        for host in deployed.plan.etcd[role]
        if host.name.startswith(f"etcd-{role}")
    }
    assert placed == expected


def test_a_machine_of_etcd_is_protected_and_one_with_local_disks_also_from_stopping(small, whole):
    for deployed in (small, whole):
        assert all(record.inputs["disableApiTermination"] is True for record in deployed.of_type(INSTANCE))
    local = {r.urn for r in whole.of_type(INSTANCE) if r.inputs["instanceType"] == "i4i.xlarge"}
    assert len(local) == 3
    assert {r.urn for r in whole.of_type(INSTANCE) if r.inputs["disableApiStop"]} == local
    assert all(r.protect for deployed in (small, whole) for r in deployed.resources if r.type in (INSTANCE, ATTACHMENT))


def test_each_member_has_its_own_disk_in_its_zone(small):
    (key,) = small.of_type(KEY)
    machines = {record.id: record for record in small.of_type(INSTANCE)}
    volumes = {record.id: record for record in small.of_type(VOLUME)}
    pairs = set()
    for record in small.of_type(ATTACHMENT):
        machine, volume = machines[record.inputs["instanceId"]], volumes[record.inputs["volumeId"]]
        assert machine.outputs["availabilityZone"] == volume.inputs["availabilityZone"]
        assert (volume.inputs["encrypted"], volume.inputs["kmsKeyId"]) == (True, key.outputs["arn"])
        assert volume.inputs["finalSnapshot"] is True
        kind = tuple(volume.inputs[name] for name in ("type", "size", "iops"))
        pairs.add((volume.inputs["tags"]["role"], record.inputs["deviceName"], kind, machine.id))
    assert len(pairs) == 6
    assert {pair[:3] for pair in pairs} == {
        ("etcd-main", "/dev/sdf", ("io2", 64, 3000)),
        ("etcd-events", "/dev/sdg", ("gp3", 16, 3000)),
    }


def test_a_host_finds_its_disk_by_its_attachment_device(small, whole):
    for role, device in (("main", "/dev/sdf"), ("events", "/dev/sdg")):
        assert disk_of(small.cluster, role).devices[0] == device
    assert disk_of(small.cluster, "main").size == 64 * 2**30
    assert disk_of(whole.cluster, "main").devices == ("/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*",)
    assert {record.inputs["tags"]["role"] for record in whole.of_type(VOLUME)} == {"etcd-events"}
    assert len(whole.of_type(VOLUME)) == len(members(whole.cluster, "events", whole.plan))


def test_pools_have_their_bounds_and_zones_and_the_autoscaler_sets_their_size(whole):
    subnets = {record.id: record.inputs["cidrBlock"] for record in whole.of_type(SUBNET)}
    by_zone = {zone.zone: str(zone.workers) for zone in zone_subnets(whole.cluster.spec)}
    for name, pool in whole.cluster.spec.pools.items():
        group, template = pool_of(whole, name)
        assert (group["minSize"], group["maxSize"]) == (pool.min, pool.max)
        assert template["instanceType"] == pool.machine
        zones = pool.zones or whole.cluster.spec.control_plane.zones
        assert [subnets[id_] for id_ in group["vpcZoneIdentifiers"]] == [by_zone[zone] for zone in zones]
        assert "desiredCapacity" not in group and "instanceRefresh" not in group
        assert group["suspendedProcesses"] == ["AZRebalance"]


def test_an_update_leaves_the_size_of_pools_to_the_autoscaler(whole):
    groups = [
        resource for resource in whole.deployment["resources"] if resource["type"] == "aws:autoscaling/group:Group"
    ]
    ignored = [resource.get("ignoreChanges") for resource in groups if "-pool-" in resource["urn"]]
    assert ignored == [["desiredCapacity"]] * len(whole.cluster.spec.pools)


def test_pools_are_bought_and_placed_as_in_the_spec(whole):
    strategies = {record.id: record.inputs["strategy"] for record in whole.of_type(PLACEMENT)}
    bought = {name: pool_of(whole, name) for name in whole.cluster.spec.pools}
    assert bought["spot"][1]["instanceMarketOptions"] == {"marketType": "spot"}
    assert bought["spot"][0]["capacityRebalance"] is True
    target = bought["reserved"][1]["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "cr-0123456789abcdef0"}
    placed = {name: strategies.get(group.get("placementGroup")) for name, (group, _) in bought.items()}
    assert placed == {"spot": None, "reserved": None, "apart": "spread", "gpu": "cluster"}
    for name in ("reserved", "apart", "gpu"):
        assert "instanceMarketOptions" not in bought[name][1]


def test_machines_with_efa_have_one_address_and_an_interface_for_efa_on_every_card(whole):
    _, template = pool_of(whole, "gpu")
    interfaces = template["networkInterfaces"]
    first, *others = interfaces
    assert (first["interfaceType"], first["deviceIndex"], len(first["securityGroups"])) == ("interface", 0, 2)
    assert {interface["interfaceType"] for interface in others} == {"efa-only"} and len(others) == 32
    assert [interface.get("networkCardIndex", 0) for interface in others] == list(range(32))
    assert {tuple(interface["securityGroups"]) for interface in others} == {tuple(first["securityGroups"][1:])}
    assert "vpcSecurityGroupIds" not in template


def test_no_two_interfaces_of_a_machine_share_a_place():
    for machine, count in (("p5.48xlarge", 32), ("m7i.48xlarge", 1), ("p6-b300.48xlarge", 16)):
        places = [(card, device) for card, device, _ in cards(machine)]
        assert len(set(places)) == len(places) == count + 1
    assert min(card for card, _, kind in cards("p6-b300.48xlarge") if kind == "efa-only") == 1
    with pytest.raises(ValueError, match=r"m7i\.large has no EFA"):
        cards("m7i.large")


def test_the_autoscaler_finds_pools_and_knows_their_nodes_in_advance(whole):
    group, _ = pool_of(whole, "gpu")
    tags, prefix = group_tags(group), "k8s.io/cluster-autoscaler"
    assert tags[f"{prefix}/enabled"] == "true"
    assert tags[f"{prefix}/{whole.cluster.name}"] == "owned"
    assert tags[f"{prefix}/node-template/label/openai.org/gpu"] == "h100"
    assert tags[f"{prefix}/node-template/taint/openai.org/gpu"] == "h100:NoSchedule"
    assert tags[f"{prefix}/node-template/label/menagerie.dev/gpu-kind"] == "NVIDIA-H100-80GB-HBM3"
    assert tags[f"{prefix}/node-template/resources/nvidia.com/gpu"] == "8"
    assert tags[f"{prefix}/node-template/resources/vpc.amazonaws.com/efa"] == "32"
    assert not [tag for tag in group["tags"] if tag["propagateAtLaunch"]]


def test_combinations_that_aws_does_not_offer_are_refused_with_the_pools_name(whole):
    pools = whole.cluster.spec.pools
    spread = pools["apart"].model_copy(update={"max": 22})
    with pytest.raises(ValueError, match=r"pools\.apart: max 22 .* 21 in total"):
        refuse_impossible("apart", spread, 3)
    refuse_impossible("apart", spread.model_copy(update={"placement": Placement.COMPACT}), 3)
    with pytest.raises(ValueError, match=r"pools\.reserved: reservation mine"):
        refuse_impossible("reserved", pools["reserved"].model_copy(update={"reservation": "mine"}), 1)
    many = {f"label-{number}": "x" for number in range(50)}
    with pytest.raises(ValueError, match=r"pools\.spot: .* tags, but AWS permits 50"):
        autoscaler_tags(whole.cluster, "spot", pools["spot"].model_copy(update={"labels": many}))
