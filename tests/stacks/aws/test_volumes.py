"""Volumes of pods: who may create them, with which key, and the file system."""

from __future__ import annotations

import json
import re

import pytest

from cluster.storage import controllers_pool
from components.control_plane.csi.drivers import EBS, EFS
from stacks.aws import volume_rights
from stacks.aws.secrets import CONTROLLERS
from tests.stacks.aws.test_secrets import statements
from tests.stacks.aws.tokens import FILE_SYSTEM, GROUP, INSTANCE, KEY, MOUNT, PROFILE, ROLE, SUBNET, TEMPLATE, VOLUME

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)


def makes(statement):
    """Whether a statement permits changes in EC2 or EFS. API servers only describe machines, to admit them."""
    actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
    return any(re.match(r"(ec2|elasticfilesystem):(?!Describe)", action) for action in actions)


@BOTH
def test_only_the_controllers_pool_may_create_volumes(deployed):
    identities = {identity for identity, own in statements(deployed).items() if any(map(makes, own.values()))}
    assert identities == {CONTROLLERS}
    roles = {record.id: record.inputs["tags"]["role"] for record in deployed.of_type(ROLE)}
    profiles = {record.outputs["arn"]: roles[record.inputs["role"]] for record in deployed.of_type(PROFILE)}
    carried = {
        record.inputs["tags"]["role"]: profiles[record.inputs["iamInstanceProfile"]["arn"]]
        for record in deployed.of_type(TEMPLATE)
    }
    pool = f"workers-{controllers_pool(deployed.cluster.spec)}"
    assert {role for role, identity in carried.items() if identity == CONTROLLERS} == {pool}


@BOTH
def test_permissions_cover_only_what_the_driver_created_for_this_cluster(deployed):
    """An etcd's volumes have the cluster's tag but not the driver's, so they can't be detached."""
    own, name = statements(deployed)[CONTROLLERS], deployed.cluster.name
    tagged = {f"ec2:ResourceTag/{volume_rights.OF_DISKS}": "true", "ec2:ResourceTag/cluster": name}
    volumes = own["UseVolumes"]
    assert tagged.items() <= volumes["Condition"]["StringEquals"].items()
    assert set(volumes["Action"]) == {f"ec2:{verb}Volume" for verb in ("Attach", "Detach", "Modify", "Delete")}
    requested = {key.replace("ec2:ResourceTag", "aws:RequestTag"): value for key, value in tagged.items()}
    for sid in ("MakeVolumes", "TagNewVolumes"):
        assert requested.items() <= own[sid]["Condition"]["StringEquals"].items()
    assert own["MakeVolumes"]["Condition"]["Bool"] == {"ec2:Encrypted": "true"}
    for record in deployed.of_type(VOLUME):
        assert volume_rights.OF_DISKS not in record.outputs["tagsAll"]


@BOTH
def test_volumes_can_be_attached_only_to_workers(deployed):
    condition = statements(deployed)[CONTROLLERS]["UseMachines"]["Condition"]
    assert condition["StringEquals"]["ec2:ResourceTag/cluster"] == deployed.cluster.name
    pattern = condition["StringLike"]["ec2:ResourceTag/role"].removesuffix("*")
    machines = {record.inputs["tags"]["role"] for record in deployed.of_type(INSTANCE)}
    launched = {
        specification["tags"]["role"]
        for record in deployed.of_type(TEMPLATE)
        for specification in record.inputs["tagSpecifications"]
        if specification["resourceType"] == "instance"
    }
    pools = {f"workers-{pool}" for pool in deployed.cluster.spec.pools}
    assert {role for role in machines | launched if role.startswith(pattern)} == pools


def test_the_drivers_add_the_tags_that_the_permissions_require(whole):
    assert f"cluster={whole.cluster.name}" in " ".join(EBS.controller(whole.cluster))
    assert f"cluster:{whole.cluster.name}" in " ".join(EFS.controller(whole.cluster))
    assert (volume_rights.OF_DISKS, volume_rights.OF_FILES) == (f"{EBS.name}/cluster", f"{EFS.name}/cluster")


def test_a_file_system_exists_if_the_spec_requests_one(small, whole):
    assert not small.of_type(FILE_SYSTEM) and "MakeAccessPoints" not in statements(small)[CONTROLLERS]
    (file_system,), (key,) = whole.of_type(FILE_SYSTEM), whole.of_type(KEY)
    assert (file_system.inputs["encrypted"], file_system.inputs["kmsKeyId"]) == (True, key.outputs["arn"])
    assert [resource.protect for resource in whole.resources if resource.type == FILE_SYSTEM] == [True]
    own = statements(whole)[CONTROLLERS]
    assert own["MakeAccessPoints"]["Resource"] == own["SeeFiles"]["Resource"] == file_system.outputs["arn"]


def test_it_has_a_mount_target_per_zone_reachable_only_by_workers(whole):
    (file_system,), groups = whole.of_type(FILE_SYSTEM), {record.id: record for record in whole.of_type(GROUP)}
    subnets = {record.id: record.inputs for record in whole.of_type(SUBNET)}
    targets = [record.inputs for record in whole.of_type(MOUNT)]
    assert {target["fileSystemId"] for target in targets} == {file_system.id}
    zones = [subnets[target["subnetId"]]["availabilityZone"] for target in targets]
    assert sorted(zones) == sorted(whole.cluster.spec.control_plane.zones)
    ((group,),) = {tuple(target["securityGroups"]) for target in targets}
    (rule,) = groups[group].inputs["ingress"]
    assert (rule["fromPort"], rule["toPort"], groups[group].inputs["egress"]) == (2049, 2049, [])
    assert [groups[id_].inputs["tags"]["role"] for id_ in rule["securityGroups"]] == ["worker-in-the-region"]


def test_it_cannot_be_mounted_without_encryption(whole):
    (policy,) = whole.of_type("aws:efs/fileSystemPolicy:FileSystemPolicy")
    by_sid = {statement["Sid"]: statement for statement in json.loads(policy.inputs["policy"])["Statement"]}
    assert by_sid["NotInClear"]["Effect"] == "Deny"
    assert by_sid["NotInClear"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert by_sid["Mounted"]["Condition"] == {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}}
