"""Policies of hosts' roles, read by a linter."""

from __future__ import annotations

import json

import pytest

from tests.stacks.aws.test_secrets import statements
from tests.stacks.linter import WIDE, found


@pytest.mark.parametrize("made", ["small", "whole"], indirect=True)
def test_a_linter_of_aws_has_nothing_against_the_policies_of_hosts(made):
    said = {}
    for identity, own in statements(made).items():
        document = {"Version": "2012-10-17", "Statement": list(own.values())}
        said[identity] = {rule for rule, _ in found(json.dumps(document, indent=2))} - {WIDE}
    assert said == {identity: set() for identity in said}
