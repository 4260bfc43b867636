"""Policies of hosts' roles, checked by a linter."""

from __future__ import annotations

import json

import pytest

from stacks.aws.secrets import CONTROLLERS
from tests.stacks.aws.test_secrets import statements
from tests.stacks.linter import problems

APART = {("RESOURCE_MISMATCH", sid) for sid in ("UseVolumes", "UseMachines")}
"""Attaching a volume requires permissions on the volume and on the machine; the linter wants both in one statement, where
they would share their conditions."""


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_a_linter_accepts_the_policies_of_hosts(deployed):
    by_identity = {}
    for identity, own in statements(deployed).items():
        document = {"Version": "2012-10-17", "Statement": list(own.values())}
        by_identity[identity] = problems(json.dumps(document, indent=2))
    assert by_identity == {identity: APART if identity == CONTROLLERS else set() for identity in by_identity}
