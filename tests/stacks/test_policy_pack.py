"""The policies as a CrossGuard pack, under the real engine and through its protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pulumi_aws as aws
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi import automation
from pulumi.automation import CommandError
from pulumi.runtime.proto import analyzer_pb2 as pb

from cluster.errors import FailedError
from cluster.load import load_cluster
from cluster.spec import Cluster
from sandbox.simcloud.rules import Offers
from stacks import policies
from stacks.plugins.policy_pack import ROOT, Pack
from stacks.validation import fleet
from stacks.validation.account import opened

PACK = ROOT / "stacks" / "plugins" / "menagerie-policies"
STACK, SPEC = "horus", "examples/horus/cluster.yaml"
TAGS = {"menagerie": "true", "cluster": STACK}
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "hush"}


def program(*, careless: bool) -> Callable[[Cluster], None]:
    def declare(cluster: Cluster) -> None:
        region = cluster.spec.control_plane.region
        kept = pulumi.ResourceOptions(provider=aws.Provider("aws", region=region), protect=True)
        key = aws.kms.Key("key", tags=TAGS, opts=kept)
        disk: dict[str, Any] = {"availability_zone": f"{region}a", "size": 10}
        aws.ebs.Volume("good", **disk, encrypted=True, kms_key_id=key.arn, tags=TAGS, opts=kept)
        if careless:
            aws.ebs.Volume(
                "bad", **disk, opts=pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(protect=False))
            )

    return declare


def previewed(folder: Path, *, careless: bool) -> set[tuple[str, str]]:
    """Return policy and resource of each violation in a preview with the pack, in which nothing has an ID or an ARN yet."""
    try:
        engine = fleet.engine()
    except FailedError:
        pytest.skip("pulumi is not built; `make lab` and `make test` build it")
    events: list[Any] = []
    cluster = load_cluster(ROOT / SPEC)
    with opened(cluster, program(careless=careless), engine, folder, Offers()) as account:
        account.stack._stack.set_config("spec", automation.ConfigValue(SPEC))
        try:
            account.stack._stack.preview(policy_packs=[str(PACK)], on_event=events.append)
            assert not careless
        except CommandError as error:
            assert careless, error
    violations = [event.policy_event for event in events if event.policy_event]
    assert {event.policy_pack_name for event in violations} <= {"menagerie"}
    return {(event.policy_name, event.resource_urn.rpartition("::")[2]) for event in violations}


def test_a_preview_with_the_pack_fails_with_each_rule_that_a_resource_breaks(tmp_path: Path) -> None:
    violations = previewed(tmp_path, careless=True)
    assert {rule for rule, name in violations if name == "bad"} == {"data-protected", "disks-encrypted", "tagged"}
    assert {name for _, name in violations} <= {"bad", f"menagerie-{STACK}"}


def test_a_preview_with_the_pack_passes_compliant_resources_with_unknown_values(tmp_path: Path) -> None:
    violations = previewed(tmp_path, careless=False)
    assert violations == set()


class Context:
    """Context of a call; aborting raises."""

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise RuntimeError(f"{code.name}: {details}")


@pytest.fixture
def pack() -> Pack:
    pack_ = Pack(ROOT)
    request = pb.AnalyzerStackConfigureRequest(stack=STACK, project="menagerie", config={"menagerie:spec": SPEC})
    pack_.ConfigureStack(request, Context())
    return pack_


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    struct_ = struct_pb2.Struct()
    struct_.update(value)
    return struct_


def test_the_pack_lists_every_rule(pack: Pack) -> None:
    info = pack.GetAnalyzerInfo(empty_pb2.Empty(), Context())
    assert [(policy.name, policy.description) for policy in info.policies] == [(r.id, r.says) for r in policies.RULES]


def test_a_rule_sees_inputs_options_and_that_a_value_is_secret(pack: Pack) -> None:
    type_ = "azure-native:compute/v20240301:VirtualMachine"
    urn = f"urn:pulumi:{STACK}::menagerie::{type_}::etcd"
    pack.Analyze(pb.AnalyzeRequest(urn=urn, properties=struct({"osProfile": {"customData": SECRET}})), Context())
    resource = pb.AnalyzerResource(urn=urn, type=type_, name="etcd", options=pb.AnalyzerResourceOptions(protect=True))
    answer = pack.AnalyzeStack(pb.AnalyzeStackRequest(resources=[resource]), Context())
    (diagnostic,) = (
        candidate for candidate in answer.diagnostics if candidate.policyName == "user-data-without-secrets"
    )
    assert (diagnostic.urn, diagnostic.enforcementLevel) == (urn, pb.MANDATORY)
    assert "something secret" in diagnostic.message
    assert "hush" not in diagnostic.message


def test_a_stack_without_a_cluster_is_refused_by_name() -> None:
    with pytest.raises(RuntimeError, match="FAILED_PRECONDITION: no policies for stack nobody"):
        Pack(ROOT).ConfigureStack(pb.AnalyzerStackConfigureRequest(stack="nobody"), Context())
