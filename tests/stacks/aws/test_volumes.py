"""Volumes of pods: who may make them, on which key, and the file system."""

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

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)


def makes(statement):
    """Whether a statement changes anything of EC2 or EFS. API servers look at machines, to admit them, and no more."""
    actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
    return any(re.match(r"(ec2|elasticfilesystem):(?!Describe)", action) for action in actions)


@BOTH
def test_the_controllers_pool_alone_may_make_volumes(made):
    found = {identity for identity, own in statements(made).items() if any(map(makes, own.values()))}
    assert found == {CONTROLLERS}
    roles = {record.id: record.inputs["tags"]["role"] for record in made.of_type(ROLE)}
    profiles = {record.outputs["arn"]: roles[record.inputs["role"]] for record in made.of_type(PROFILE)}
    carried = {
        record.inputs["tags"]["role"]: profiles[record.inputs["iamInstanceProfile"]["arn"]]
        for record in made.of_type(TEMPLATE)
    }
    pool = f"workers-{controllers_pool(made.cluster.spec)}"
    assert {role for role, identity in carried.items() if identity == CONTROLLERS} == {pool}


@BOTH
def test_rights_end_at_what_the_driver_made_for_this_cluster(made):
    """An etcd's volumes carry the cluster's tag and not the driver's, so nobody detaches them."""
    own, name = statements(made)[CONTROLLERS], made.cluster.name
    tagged = {f"ec2:ResourceTag/{volume_rights.OF_DISKS}": "true", "ec2:ResourceTag/cluster": name}
    volumes = own["UseVolumes"]
    assert tagged.items() <= volumes["Condition"]["StringEquals"].items()
    assert set(volumes["Action"]) == {f"ec2:{verb}Volume" for verb in ("Attach", "Detach", "Modify", "Delete")}
    asked = {key.replace("ec2:ResourceTag", "aws:RequestTag"): value for key, value in tagged.items()}
    for sid in ("MakeVolumes", "TagNewVolumes"):
        assert asked.items() <= own[sid]["Condition"]["StringEquals"].items()
    assert own["MakeVolumes"]["Condition"]["Bool"] == {"ec2:Encrypted": "true"}
    for record in made.of_type(VOLUME):
        assert volume_rights.OF_DISKS not in record.outputs["tagsAll"]


@BOTH
def test_volumes_are_attached_to_workers_and_to_no_member_of_an_etcd(made):
    condition = statements(made)[CONTROLLERS]["UseMachines"]["Condition"]
    assert condition["StringEquals"]["ec2:ResourceTag/cluster"] == made.cluster.name
    pattern = condition["StringLike"]["ec2:ResourceTag/role"].removesuffix("*")
    machines = {record.inputs["tags"]["role"] for record in made.of_type(INSTANCE)}
    launched = {
        one["tags"]["role"]
        for record in made.of_type(TEMPLATE)
        for one in record.inputs["tagSpecifications"]
        if one["resourceType"] == "instance"
    }
    pools = {f"workers-{pool}" for pool in made.cluster.spec.pools}
    assert {role for role in machines | launched if role.startswith(pattern)} == pools


def test_the_drivers_put_the_tags_on_that_the_rights_ask_for(whole):
    assert f"cluster={whole.cluster.name}" in " ".join(EBS.controller(whole.cluster))
    assert f"cluster:{whole.cluster.name}" in " ".join(EFS.controller(whole.cluster))
    assert (volume_rights.OF_DISKS, volume_rights.OF_FILES) == (f"{EBS.name}/cluster", f"{EFS.name}/cluster")


def test_a_file_system_is_where_the_spec_asks_for_one(small, whole):
    assert not small.of_type(FILE_SYSTEM) and "MakeAccessPoints" not in statements(small)[CONTROLLERS]
    (made,), (key,) = whole.of_type(FILE_SYSTEM), whole.of_type(KEY)
    assert (made.inputs["encrypted"], made.inputs["kmsKeyId"]) == (True, key.outputs["arn"])
    assert [resource.protect for resource in whole.resources if resource.type == FILE_SYSTEM] == [True]
    own = statements(whole)[CONTROLLERS]
    assert own["MakeAccessPoints"]["Resource"] == own["SeeFiles"]["Resource"] == made.outputs["arn"]


def test_it_has_a_mount_target_a_zone_that_workers_alone_reach(whole):
    (made,), groups = whole.of_type(FILE_SYSTEM), {record.id: record for record in whole.of_type(GROUP)}
    subnets = {record.id: record.inputs for record in whole.of_type(SUBNET)}
    targets = [record.inputs for record in whole.of_type(MOUNT)]
    assert {target["fileSystemId"] for target in targets} == {made.id}
    zones = [subnets[target["subnetId"]]["availabilityZone"] for target in targets]
    assert sorted(zones) == sorted(whole.cluster.spec.control_plane.zones)
    ((group,),) = {tuple(target["securityGroups"]) for target in targets}
    (rule,) = groups[group].inputs["ingress"]
    assert (rule["fromPort"], rule["toPort"], groups[group].inputs["egress"]) == (2049, 2049, [])
    assert [groups[id_].inputs["tags"]["role"] for id_ in rule["securityGroups"]] == ["worker-in-the-region"]


def test_nobody_mounts_it_in_clear(whole):
    (policy,) = whole.of_type("aws:efs/fileSystemPolicy:FileSystemPolicy")
    found = {one["Sid"]: one for one in json.loads(policy.inputs["policy"])["Statement"]}
    assert found["NotInClear"]["Effect"] == "Deny"
    assert found["NotInClear"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert found["Mounted"]["Condition"] == {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}}
