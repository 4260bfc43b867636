"""Updates that fail or are interrupted, and their effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_gcp as gcp

from tests.stacks.engines import kill_engine

VPC = "aws:ec2/vpc:Vpc"
NETWORK = "gcp:compute/network:Network"


def _vpc(tags: dict[str, str] | None = None) -> Callable[[], None]:
    def program() -> None:
        aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags=tags)

    return program


def test_a_throttled_update_continues_where_it_stopped(engine: Callable[..., Any]) -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        for i in range(3):
            aws.ec2.Subnet(f"subnet-{i}", vpc_id=vpc.id, cidr_block=f"10.0.{i}.0/24")

    run = engine()
    run.program = program
    run.faults.throttle("create", "aws:ec2/subnet:*")
    assert "RequestLimitExceeded" in run.refused()
    run.faults.fail("create", "aws:ec2/subnet:*", message="api error InternalError: An internal error has occurred")
    assert "InternalError" in run.refused()
    run.up()
    assert run.faults.unmet == []
    assert (len(run.world), run.orphans()) == (4, [])


def test_a_lost_response_orphans_an_unnamed_resource_and_the_world_reports_it(engine: Callable[..., Any]) -> None:
    run = engine()
    run.program = _vpc()
    run.faults.lose_answer("create", VPC)
    assert "the answer to create aws:ec2/vpc:Vpc was lost" in run.refused()
    run.up()
    (orphan,) = run.orphans()
    assert (orphan.type, orphan.urn) == (VPC, "urn:pulumi:sim::apes::aws:ec2/vpc:Vpc::vpc")
    assert orphan.id in str(orphan)
    run.stack.destroy()
    assert list(run.world) == [orphan]


def test_repeating_an_update_or_a_deletion_recovers_from_a_lost_response(engine: Callable[..., Any]) -> None:
    run = engine()
    run.program = _vpc()
    run.up()
    run.program = _vpc({"team": "apes"})
    run.faults.lose_answer("update", VPC)
    run.refused()
    assert run.up() == {"update": 1}
    run.faults.lose_answer("delete", VPC)
    run.refused(run.stack.destroy)
    run.stack.destroy()
    assert (run.faults.unmet, list(run.world)) == ([], [])


def test_a_named_resource_is_refused_the_second_time_and_can_be_imported(engine: Callable[..., Any]) -> None:
    def program(import_: str | None = None) -> None:
        options = pulumi.ResourceOptions(import_=import_)
        gcp.compute.Network("network", name="apes", auto_create_subnetworks=False, opts=options)

    run = engine()
    run.program = program
    run.faults.lose_answer("create", NETWORK)
    run.refused()
    message = run.refused()
    assert "The resource 'projects/apes/global/networks/apes' already exists, alreadyExists" in message
    assert f"pulumi import {NETWORK} <name> projects/apes/global/networks/apes" in message
    run.program = lambda: program("projects/apes/global/networks/apes")
    assert run.up() == {"import": 1}
    assert run.orphans() == []


def test_the_state_of_a_killed_engine_and_the_world_name_the_same_resource(
    engine: Callable[..., Any],
) -> None:
    run = engine()
    run.program = _vpc()
    run.faults.lose_answer("create", VPC, meanwhile=kill_engine)
    run.refused()
    (pending,) = run.stack.export_stack().deployment["pending_operations"]
    (orphan,) = run.orphans()
    assert (pending["type"], pending["resource"]["urn"]) == ("creating", orphan.urn)


def test_a_refresh_detects_changes_and_deletions_outside_the_engine(engine: Callable[..., Any]) -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=True)
        aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.1.0/24")

    run = engine()
    run.program = program
    run.up()
    (vpc,) = run.world.of_type(VPC)
    (subnet,) = run.world.of_type("aws:ec2/subnet:Subnet")
    run.world.change(*vpc.key, enableDnsHostnames=False)
    run.world.remove(*subnet.key)
    assert run.preview() == {"same": 2}
    assert run.up(refresh=True) == {"refresh": 2, "update": 1, "create": 1}
    (vpc,) = run.world.of_type(VPC)
    assert vpc.outputs["enableDnsHostnames"] is True
    assert run.preview(refresh=True) == {"refresh": 2, "same": 2}
