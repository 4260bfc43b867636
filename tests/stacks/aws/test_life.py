"""A cluster from its first plan to its deletion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from network.addresses import ROLES
from stacks import policies
from stacks.policies.data import kept_by
from stacks.steps import name_of

ROOT = Path(__file__).resolve().parents[3]
UPDATES = ("more hosts", "everything else")
_PAYLOADS = ("aws:secretsmanager/secret:Secret", "aws:secretsmanager/secretVersion:SecretVersion")


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_everything_is_created_and_a_second_plan_is_empty(deployed):
    assert deployed.runs["up"].complaints == []
    assert (deployed.runs["again"].steps, deployed.runs["again"].complaints) == ([], [])
    urns = {resource["urn"] for resource in deployed.deployment["resources"]}
    assert {record.urn for record in deployed.records} <= urns


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_replaces_only_payloads(small, name):
    run = small.runs[name]
    assert run.complaints == []
    assert run.steps
    lost = [step for step in run.steps if step.loses]
    assert {step.type for step in lost} <= set(_PAYLOADS)
    # A bundle contains the digest of its host's payload; keys in it stay.
    bundles = {f"small-secrets-{host.name}" for role in ROLES for host in small.plan.etcd[role]}
    assert all("payload" in step.name or step.name in bundles for step in lost), lost


def test_existing_members_stay_unchanged_by_any_update(small):
    machines = {resource.urn for resource in small.resources if resource.type == "aws:ec2/instance:Instance"}
    assert len(machines) == 3
    for name in UPDATES:
        assert not machines & {step.urn for step in small.runs[name].steps}, name
    created = [step.name for step in small.runs["more hosts"].steps if step.operation == "create"]
    assert {"small-etcd-main-4", "small-etcd-main-5"} <= set(created)


def test_disks_grow_in_place(small):
    changed = [step for step in small.runs["everything else"].steps if step.type == "aws:ebs/volume:Volume"]
    assert [step.operation for step in changed] == ["update"] * 3
    assert {step.name for step in changed} == {f"small-etcd-main-{number}" for number in (1, 2, 3)}


def test_members_and_data_survive_a_destroy_without_a_release(small):
    data = ("aws:kms/key:Key", "aws:s3/bucket:Bucket", "aws:ebs/volume:Volume")
    kept = [resource for resource in small.resources if resource.type in data]
    assert len(kept) == 1 + 4 + 6
    assert all(resource.protect and kept_by(resource) for resource in kept)
    # The engine refuses to delete a protected resource when it comes to it; unprotected ones may be gone by then.
    running = ("aws:ec2/instance:Instance", "aws:ec2/volumeAttachment:VolumeAttachment")
    guarded = {record.key for record in small.records if record.type in (*data, *running)}
    assert guarded <= {record.key for record in small.kept} and len(guarded) == len(kept) + 3 + 6
    assert "protect" in str(small.runs["forbidden"].complaints)


def test_a_released_cluster_is_destroyed_completely(small):
    released, destroyed = small.runs["release"], small.runs["destroy"]
    assert (released.complaints, destroyed.complaints) == ([], [])
    assert not [step for step in released.steps if step.loses]
    assert small.left == ()


def test_the_number_of_resources_of_a_small_cluster(small):
    """docs/reference/aws.md lists them, and which are separate although they could be combined."""
    assert len(small.records) <= 105


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_everything_is_tagged_with_its_cluster_and_role(deployed):
    name = deployed.cluster.name
    for record in deployed.records:
        if "tags" in record.inputs and record.type != "aws:autoscaling/group:Group":
            tags = record.outputs["tagsAll"]
            assert (tags["menagerie"], tags["cluster"]) == ("true", name), record.urn
            assert tags["role"] and tags["Name"].startswith(f"{name}-"), record.urn


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_no_secret_is_in_clear_in_the_state(deployed):
    text = json.dumps(deployed.deployment)
    assert "BEGIN CERTIFICATE" in text
    assert "PRIVATE KEY" not in text
    assert "key.of.a.router" not in text
    assert not [r for r in deployed.resources if "BEGIN EC PRIVATE" in json.dumps(r.outputs, default=str)]


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_created_resources_comply_with_every_policy(deployed):
    assert [str(violation) for violation in policies.check(deployed.cluster, deployed.resources)] == []


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_names_in_the_program_are_unique_within_their_type(deployed):
    names = [(record.type, name_of(record.urn)) for record in deployed.records]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("stacks.program", ("pulumi_aws", "pulumi_azure_native", "pulumi_gcp")),
        ("stacks.aws.provider", ("pulumi_azure_native", "pulumi_gcp", "lab")),
        ("stacks.aws.credentials", ("pulumi", "pulumi_aws", "pulumi_azure_native", "pulumi_gcp")),
    ],
)
def test_only_the_clusters_own_cloud_is_imported(module, absent):
    program = f"import sys, {module}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
