"""The world and the faults, without an engine."""

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


def test_a_world_in_a_file_is_as_it_was_when_it_is_opened_again(api: Any, tmp_path: Path) -> None:
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


def test_the_same_resource_made_again_is_another(api: Any) -> None:
    aws = api("aws")
    first = aws.create(VPC, cidrBlock="10.0.0.0/16")
    aws.delete(first)
    assert aws.create(VPC, cidrBlock="10.0.0.0/16").id != first.id


def test_orphans_are_what_no_state_has(api: Any) -> None:
    aws = api("aws")
    vpc, subnet = _two(aws)
    state = {"resources": [{"type": "pulumi:pulumi:Stack"}, {"type": VPC, "id": vpc.id}]}
    assert aws.world.orphans(state) == [subnet]


def test_a_change_behind_the_engine_s_back_is_one_of_inputs_only_where_a_program_may_set_it(api: Any) -> None:
    aws = api("aws")
    vpc, _ = _two(aws)
    aws.world.change(*vpc.key, enableDnsHostnames=True, ownerId="210987654321")
    changed = aws.world.get(*vpc.key)
    assert (changed.inputs["enableDnsHostnames"], changed.outputs["enableDnsHostnames"]) == (True, True)
    assert ("ownerId" in changed.inputs, changed.outputs["ownerId"]) == (False, "210987654321")
    with pytest.raises(KeyError):
        aws.world.change(VPC, "vpc-1", tags={})


def test_what_is_gone_cannot_be_updated(api: Any) -> None:
    aws = api("aws")
    _, subnet = _two(aws)
    aws.world.remove(*subnet.key)
    with pytest.raises(RefusalError, match="deleted behind the engine's back; run again with a refresh"):
        aws.update(subnet, mapPublicIpOnLaunch=True)


def test_a_type_without_rules_is_kept_and_named(api: Any) -> None:
    aws = api("aws")
    queue = aws.create("aws:sqs/queue:Queue", fifoQueue=True)
    assert aws.replaces(queue.type, {"fifoQueue": True}, {"fifoQueue": False}) == []
    assert queue.outputs["arn"].startswith("arn:aws:sqs:eu-west-1:123456789012:queue/")
    assert dict(aws.world.unproven) == {"aws:sqs/queue:Queue": {"it"}}


def test_a_function_that_is_not_simulated_says_where_it_belongs(api: Any) -> None:
    aws = api("aws")
    with pytest.raises(RefusalError, match="no function aws:x/y:y; add it to sandbox/simcloud/aws/functions.py"):
        aws.simulation.invoke(aws.settings, "aws:x/y:y", {})


@pytest.mark.parametrize(("proposed", "name"), [("", "hosts-5eed5ee"), ("apes-hosts", "apes-hosts")])
def test_a_name_is_generated_once_and_as_the_project_s_configuration_says(api: Any, proposed: str, name: str) -> None:
    aws = api("aws")
    token, urn = "aws:ec2/securityGroup:SecurityGroup", "urn:pulumi:sim::apes::t::hosts"
    first, _ = aws.simulation.check(aws.settings, token, urn, {}, {}, "5eed5eed", proposed)
    again, _ = aws.simulation.check(aws.settings, token, urn, first, {}, "0000000", "")
    assert first["name"] == again["name"] == name
    # A replacement can exist beside the old one only if its name is another's.
    assert not aws.simulation.diff(token, first, {**again, "description": "new"}).delete_first
    named = {"name": "hosts"}
    assert aws.simulation.diff(token, named, {**named, "description": "new"}).delete_first
    _, (failure,) = aws.simulation.check(aws.settings, token, urn, {}, {}, "5eed5eed", None)
    assert "forbids generated names" in str(failure)


def test_what_a_function_makes_of_a_secret_and_what_replaces_one_are_secret(api: Any) -> None:
    aws = api("aws")
    arguments = {"owners": [Secret("xyzzy")], "mostRecent": True}
    result = aws.simulation.invoke(aws.settings, "aws:ec2/getAmi:getAmi", arguments)
    assert (result["owners"], result["mostRecent"]) == (Secret(["xyzzy"]), True)
    parameter = aws.create("aws:ssm/parameter:Parameter", value=Secret("xyzzy"))
    aws.world.change(*parameter.key, value="plugh")
    assert aws.world.get(*parameter.key).outputs["value"] == Secret("plugh")


def test_faults_hit_the_calls_that_they_are_for() -> None:
    faults = Faults()
    faults.throttle("create", "aws:ec2/*", times=2)
    faults.fail("create", "aws:ec2/subnet:*", nth=3)
    faults.lose_answer("delete", "*", nth=2)
    calls = [("create", VPC), ("read", VPC), ("create", SUBNET), ("create", SUBNET), ("create", SUBNET)]
    hits = [fault.effect if (fault := faults.hit(*call)) else None for call in calls]
    assert hits == [Effect.THROTTLE, None, Effect.THROTTLE, None, Effect.FAIL]
    assert faults.unmet == ["lose the answer of delete *, calls 2 to 2"]
