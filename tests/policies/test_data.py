"""Policies about data, without an engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.spec import Cluster
from stacks.policies.data import AUTHORITIES, MACHINES, STORES, kept_by
from tests.policies.support import broken, resource


@pytest.mark.parametrize("type_", STORES)
def test_resources_with_data_must_be_protected(lab: Cluster, type_: str) -> None:
    bare = resource(type_)
    (violation,) = broken("data-protected", lab, (bare,))
    assert (violation.rule, violation.resource, violation.severity) == ("data-protected", bare, "error")
    assert "protect=True" in violation.way_out
    assert broken("data-protected", lab, (replace(bare, protect=True),)) == []


def test_resources_without_data_need_no_protection(lab: Cluster) -> None:
    assert broken("data-protected", lab, (resource("aws:ec2/vpc:Vpc"), resource("gcp:compute/address:Address"))) == []


def test_a_protected_resource_of_any_type_counts_as_keeping_data() -> None:
    assert kept_by(resource("aws:ec2/vpc:Vpc")) is None
    assert kept_by(resource("aws:ec2/vpc:Vpc", protect=True)) == "a resource marked `protect`"
    assert [type_ for type_ in {**STORES, **MACHINES, **AUTHORITIES} if not kept_by(resource(type_))] == []


@pytest.mark.parametrize("type_", MACHINES)
@pytest.mark.parametrize(
    ("role", "kept"), [("etcd-main", True), ("etcd-events-2", True), ("bastion", False), ("", True)]
)
def test_an_individual_machine_keeps_data_unless_its_tags_say_it_is_no_member(
    type_: str, role: str, kept: bool
) -> None:
    property_ = "labels" if type_.startswith("gcp:") else "tags"
    machine = resource(type_, {property_: {"role": role}} if role else {})
    assert bool(kept_by(machine)) is kept
    assert kept_by(replace(machine, protect=True)) is not None
