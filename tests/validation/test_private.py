"""The environment of a validation contains nothing of the user's."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from stacks.validation import private
from stacks.validation.sections import PROGRAM, section_of


def test_only_variables_that_programs_need_pass_from_the_users_environment() -> None:
    given = {"PATH": "/bin", "HOME": "/home/ape", "LC_ALL": "C", "PYTHONPYCACHEPREFIX": "/c", "AWS_PROFILE": "p"}
    given |= {"PULUMI_HOME": "/theirs", "PULUMI_CONFIG_PASSPHRASE_FILE": "/theirs", "GOOGLE_CREDENTIALS": "{}"}
    passed = private.variables(given)
    assert {name for name in passed if name in given} == {"PATH", "HOME", "LC_ALL", "PYTHONPYCACHEPREFIX"}
    assert {name for name in passed if name.startswith(("PULUMI", "AWS", "GOOGLE"))} == {"PULUMI_CONFIG_PASSPHRASE"}


def test_every_run_has_a_different_passphrase() -> None:
    first, second = private.variables({}), private.variables({})
    assert len(first["PULUMI_CONFIG_PASSPHRASE"]) >= 32
    assert first["PULUMI_CONFIG_PASSPHRASE"] != second["PULUMI_CONFIG_PASSPHRASE"]


def test_the_environment_is_restored_after_a_block_even_after_a_failure(
    hostile: Callable[[], AbstractContextManager[dict[str, str]]],
) -> None:
    with hostile() as before:
        try:
            with private.environment({"PULUMI_DEBUG_PROVIDERS": "aws:2"}):
                assert os.environ["PULUMI_DEBUG_PROVIDERS"] == "aws:2"
                assert "AWS_REGION" not in os.environ
                raise ValueError
        except ValueError:
            pass
        assert dict(os.environ) == before


def test_a_resource_belongs_to_the_part_of_the_spec_of_its_component() -> None:
    parts = {
        "menagerie:aws:Etcd$aws:ec2/instance:Instance": ("etcd",),
        "menagerie:gcp:ControlPlane$gcp:compute/instanceTemplate:InstanceTemplate": ("control_plane",),
        "menagerie:azure:Workers$azure-native:compute:VirtualMachineScaleSet": ("pools",),
        "menagerie:aws:SecurityGroups$aws:ec2/securityGroup:SecurityGroup": ("network",),
        "aws:ec2/networkInterface:NetworkInterface": PROGRAM,
    }
    assert {kind: section_of(f"urn:pulumi:s::menagerie::{kind}::name") for kind in parts} == parts
    assert section_of("") == PROGRAM
