"""The environment of a validation holds nothing of the user's."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from stacks.validation import private
from stacks.validation.sections import PROGRAM, section_of


def test_of_the_user_s_environment_only_what_programs_need_is_seen() -> None:
    given = {"PATH": "/bin", "HOME": "/home/ape", "LC_ALL": "C", "PYTHONPYCACHEPREFIX": "/c", "AWS_PROFILE": "p"}
    given |= {"PULUMI_HOME": "/theirs", "PULUMI_CONFIG_PASSPHRASE_FILE": "/theirs", "GOOGLE_CREDENTIALS": "{}"}
    seen = private.variables(given)
    assert {name for name in seen if name in given} == {"PATH", "HOME", "LC_ALL", "PYTHONPYCACHEPREFIX"}
    assert {name for name in seen if name.startswith(("PULUMI", "AWS", "GOOGLE"))} == {"PULUMI_CONFIG_PASSPHRASE"}


def test_every_run_has_a_passphrase_of_its_own() -> None:
    first, second = private.variables({}), private.variables({})
    assert len(first["PULUMI_CONFIG_PASSPHRASE"]) >= 32
    assert first["PULUMI_CONFIG_PASSPHRASE"] != second["PULUMI_CONFIG_PASSPHRASE"]


def test_the_environment_is_as_before_after_a_block_also_when_it_fails(
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


def test_a_resource_is_of_the_part_of_the_spec_that_its_component_is_made_from() -> None:
    of = {
        "menagerie:aws:Etcd$aws:ec2/instance:Instance": ("etcd",),
        "menagerie:gcp:ControlPlane$gcp:compute/instanceTemplate:InstanceTemplate": ("control_plane",),
        "menagerie:azure:Workers$azure-native:compute:VirtualMachineScaleSet": ("pools",),
        "menagerie:aws:SecurityGroups$aws:ec2/securityGroup:SecurityGroup": ("network",),
        "aws:ec2/networkInterface:NetworkInterface": PROGRAM,
    }
    assert {kind: section_of(f"urn:pulumi:s::menagerie::{kind}::name") for kind in of} == of
    assert section_of("") == PROGRAM
