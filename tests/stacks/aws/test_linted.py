"""Policies of hosts' roles, read by a linter."""

from __future__ import annotations

import json

import pytest

from stacks.aws.secrets import CONTROLLERS
from tests.stacks.aws.test_secrets import statements
from tests.stacks.linter import found

APART = {("RESOURCE_MISMATCH", sid) for sid in ("UseVolumes", "UseMachines")}
"""To attach a volume takes a right to it and one to the machine; the linter wants both in one statement, where they would share
their conditions."""


@pytest.mark.parametrize("made", ["small", "whole"], indirect=True)
def test_a_linter_of_aws_has_nothing_against_the_policies_of_hosts(made):
    said = {}
    for identity, own in statements(made).items():
        document = {"Version": "2012-10-17", "Statement": list(own.values())}
        said[identity] = found(json.dumps(document, indent=2))
    assert said == {identity: APART if identity == CONTROLLERS else set() for identity in said}
