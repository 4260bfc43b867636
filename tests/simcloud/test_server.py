"""The servers without an engine: their answers, and that they are stopped afterwards."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.values import to_wire
from sandbox.simcloud.world import World

VPC = "aws:ec2/vpc:Vpc"
GROUP = "aws:ec2/securityGroup:SecurityGroup"


def _ports(environment: dict[str, str]) -> dict[str, int]:
    pairs = [entry.split(":") for entry in environment["PULUMI_DEBUG_PROVIDERS"].split(",")]
    return {package: int(port) for package, port in pairs}


@contextmanager
def _aws() -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    with (
        simulated_clouds(World(), clouds=["aws"]) as environment,
        grpc.insecure_channel(f"127.0.0.1:{_ports(environment)['aws']}") as channel,
    ):
        yield provider_pb2_grpc.ResourceProviderStub(channel)


def test_each_cloud_has_a_port_on_loopback_until_the_end_of_the_block() -> None:
    with simulated_clouds(World()) as environment:
        ports = _ports(environment)
        assert set(ports) == {"aws", "azure-native", "gcp"}
        for port in ports.values():
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
    for port in ports.values():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_provider_reports_its_version_and_that_it_accepts_secrets() -> None:
    with _aws() as provider:
        assert provider.Handshake(pb.ProviderHandshakeRequest()).accept_secrets
        assert provider.GetPluginInfo(empty_pb2.Empty()).version == metadata.version("pulumi-aws")
        assert '"name": "aws"' in provider.GetSchema(pb.GetSchemaRequest()).schema
        provider.Cancel(empty_pb2.Empty())


def test_an_unconfigured_provider_refuses_instead_of_guessing() -> None:
    with _aws() as provider:
        with pytest.raises(grpc.RpcError, match="aws:region"):
            provider.Configure(pb.ConfigureRequest(args=to_wire({})))
        with pytest.raises(grpc.RpcError, match="not configured over this connection") as error:
            provider.Create(pb.CreateRequest(type=VPC, urn="u", properties=to_wire({"cidrBlock": "10.0.0.0/16"})))
        assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_preview_creates_nothing_and_needs_no_configuration() -> None:
    with _aws() as provider:
        request = pb.CreateRequest(type=VPC, urn="u", preview=True, properties=to_wire({"cidrBlock": "10.0.0.0/16"}))
        response = provider.Create(request)
        assert (response.id, dict(response.properties)) == ("", {"cidrBlock": "10.0.0.0/16"})


def test_a_plan_shows_replacements_and_whether_the_old_resource_is_deleted_first() -> None:
    def planned(old: dict[str, object], new: dict[str, object]) -> pb.DiffResponse:
        return provider.Diff(pb.DiffRequest(type=GROUP, old_inputs=to_wire(old), news=to_wire(new)))

    with _aws() as provider:
        changed = planned({"name": "hosts", "tags": {"a": "1"}}, {"name": "hosts", "description": "new"})
        assert list(changed.replaces) == ["description"]
        assert changed.deleteBeforeReplace
        kinds = {path: difference.kind for path, difference in changed.detailedDiff.items()}
        assert kinds == {"description": pb.PropertyDiff.ADD_REPLACE, "tags.a": pb.PropertyDiff.DELETE}
        assert list(changed.diffs) == ["description", "tags"]
        assert not planned({"name": "hosts"}, {"name": "others"}).deleteBeforeReplace
        assert planned({"name": "hosts"}, {"name": "hosts"}).changes == pb.DiffResponse.DIFF_NONE
