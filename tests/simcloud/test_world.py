"""The world and faults, without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.simcloud.faults import Effect, Faults
from sandbox.simcloud.rules import RefusalError
from sandbox.simcloud.values import Secret
from sandbox.simcloud.world import World

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"


def _two(aws: Any) -> tuple[Any, Any]:
    vpc = aws.create(VPC, cidrBlock="10.0.0.0/16")
    return vpc, aws.create(SUBNET, vpcId=vpc.id, cidrBlock="10.0.1.0/24")


def test_a_world_in_a_file_is_unchanged_after_it_is_reopened(api: Any, tmp_path: Path) -> None:
    file = tmp_path / "world.jsonl"
    aws = api("aws", World(file))
    vpc, subnet = _two(aws)
    third = aws.create(VPC, "third", cidrBlock="10.1.0.0/16")
    aws.delete(third)
    with file.open("a") as cut_short:
        cut_short.write('{"type": "aws:ec2')
    for _ in range(2):
        again = World(file)
        assert list(again) == [vpc, subnet]
        assert again.find((VPC,), vpc.outputs["arn"]) == [vpc]
        assert again.users(vpc) == [subnet]
    with pytest.raises(RefusalError, match="DependencyViolation"):
        api("aws", again).delete(vpc)
    api("aws", again).delete(subnet)
    assert list(World(file)) == [vpc]


def test_a_recreated_resource_has_a_new_id(api: Any) -> None:
    aws = api("aws")
    first = aws.create(VPC, cidrBlock="10.0.0.0/16")
    aws.delete(first)
    assert aws.create(VPC, cidrBlock="10.0.0.0/16").id != first.id


def test_orphans_are_resources_that_are_in_no_state(api: Any) -> None:
    aws = api("aws")
    vpc, subnet = _two(aws)
    state = {"resources": [{"type": "pulumi:pulumi:Stack"}, {"type": VPC, "id": vpc.id}]}
    assert aws.world.orphans(state) == [subnet]


def test_a_change_outside_the_engine_changes_inputs_only_if_a_program_may_set_them(api: Any) -> None:
    aws = api("aws")
    vpc, _ = _two(aws)
    aws.world.change(*vpc.key, enableDnsHostnames=True, ownerId="210987654321")
    changed = aws.world.get(*vpc.key)
    assert (changed.inputs["enableDnsHostnames"], changed.outputs["enableDnsHostnames"]) == (True, True)
    assert ("ownerId" in changed.inputs, changed.outputs["ownerId"]) == (False, "210987654321")
    with pytest.raises(KeyError):
        aws.world.change(VPC, "vpc-1", tags={})


def test_a_deleted_resource_cannot_be_updated(api: Any) -> None:
    aws = api("aws")
    _, subnet = _two(aws)
    aws.world.remove(*subnet.key)
    with pytest.raises(RefusalError, match="deleted outside the engine; run again with a refresh"):
        aws.update(subnet, mapPublicIpOnLaunch=True)


def test_a_type_without_rules_is_stored_and_listed(api: Any) -> None:
    aws = api("aws")
    queue = aws.create("aws:sqs/queue:Queue", fifoQueue=True)
    assert aws.replaces(queue.type, {"fifoQueue": True}, {"fifoQueue": False}) == []
    assert queue.outputs["arn"].startswith("arn:aws:sqs:eu-west-1:123456789012:queue/")
    assert dict(aws.world.unproven) == {"aws:sqs/queue:Queue": {"it"}}


def test_the_error_says_where_to_add_a_missing_function(api: Any) -> None:
    aws = api("aws")
    with pytest.raises(RefusalError, match="no function aws:x/y:y; add it to sandbox/simcloud/aws/functions.py"):
        aws.simulation.invoke(aws.settings, "aws:x/y:y", {})


@pytest.mark.parametrize(("proposed", "name"), [("", "hosts-5eed5ee"), ("apes-hosts", "apes-hosts")])
def test_a_name_is_generated_once_according_to_the_project_s_configuration(api: Any, proposed: str, name: str) -> None:
    aws = api("aws")
    token, urn = "aws:ec2/securityGroup:SecurityGroup", "urn:pulumi:sim::apes::t::hosts"
    first, _ = aws.simulation.check(aws.settings, token, urn, {}, {}, "5eed5eed", proposed)
    again, _ = aws.simulation.check(aws.settings, token, urn, first, {}, "0000000", "")
    assert first["name"] == again["name"] == name
    # A replacement can exist at the same time as the old resource only if it has another name.
    assert not aws.simulation.diff(token, first, {**again, "description": "new"}).delete_first
    named = {"name": "hosts"}
    assert aws.simulation.diff(token, named, {**named, "description": "new"}).delete_first
    _, (failure,) = aws.simulation.check(aws.settings, token, urn, {}, {}, "5eed5eed", None)
    assert "forbids generated names" in str(failure)


def test_function_results_with_a_secret_and_replaced_secrets_are_secret(api: Any) -> None:
    aws = api("aws")
    arguments = {"owners": [Secret("xyzzy")], "mostRecent": True}
    result = aws.simulation.invoke(aws.settings, "aws:ec2/getAmi:getAmi", arguments)
    assert (result["owners"], result["mostRecent"]) == (Secret(["xyzzy"]), True)
    parameter = aws.create("aws:ssm/parameter:Parameter", value=Secret("xyzzy"))
    aws.world.change(*parameter.key, value="plugh")
    assert aws.world.get(*parameter.key).outputs["value"] == Secret("plugh")


def test_faults_affect_matching_calls() -> None:
    faults = Faults()
    faults.throttle("create", "aws:ec2/*", times=2)
    faults.fail("create", "aws:ec2/subnet:*", nth=3)
    faults.lose_answer("delete", "*", nth=2)
    calls = [("create", VPC), ("read", VPC), ("create", SUBNET), ("create", SUBNET), ("create", SUBNET)]
    hits = [fault.effect if (fault := faults.hit(*call)) else None for call in calls]
    assert hits == [Effect.THROTTLE, None, Effect.THROTTLE, None, Effect.FAIL]
    assert faults.unmet == ["lose the answer of delete *, calls 2 to 2"]
