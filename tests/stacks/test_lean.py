from __future__ import annotations

import contextvars
import gc
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pulumi_azure_native as azure
import pulumi_gcp as gcp
import pytest
from pulumi.runtime.mocks import MockMonitor, Mocks
from pulumi.runtime.proto import resource_pb2

from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks import lean
from tests.bench import plan
from tests.programs import program

Request = resource_pb2.RegisterResourceRequest


class Requests(MockMonitor):
    """An engine that records the runtime's requests."""

    def __init__(self) -> None:
        super().__init__(Echo())
        self.requests: dict[str, Request] = {}

    def RegisterResource(self, request: Request) -> resource_pb2.RegisterResourceResponse:
        self.requests[request.name] = request
        return super().RegisterResource(request)


class Echo(Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, object]]:
        return f"{args.name}-id", args.inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, object]:
        return {}


class Network(pulumi.ComponentResource):
    """A network of each cloud, in a component as in our stacks."""

    def __init__(self, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("menagerie:test:Network", "network", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        group = azure.resources.ResourceGroup("group", location="westeurope", opts=own)
        space = azure.network.AddressSpaceArgs(address_prefixes=["10.44.0.0/16"])
        net = azure.network.VirtualNetwork(
            "net", resource_group_name=group.name, location=group.location, address_space=space, opts=own
        )
        azure.network.Subnet(
            "subnet",
            resource_group_name=group.name,
            virtual_network_name=net.name,
            address_prefix="10.44.1.0/24",
            opts=pulumi.ResourceOptions(parent=net, aliases=[pulumi.Alias(name="old")], protect=True),
        )
        azure.privatedns.PrivateZone(
            "zone", private_zone_name="apes.internal", location="global", resource_group_name=group.name, opts=own
        )
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.44.0.0/16", opts=own)
        aws.ec2.Subnet("aws-subnet", vpc_id=vpc.id, cidr_block="10.44.1.0/24", opts=own)
        gcp.compute.Network("gcp-network", auto_create_subnetworks=False, opts=own)
        self.register_outputs({})


def requests_after(before: Callable[[], None]) -> dict[str, Request]:
    """Return name of a resource -> the runtime's request for it, if `before` runs before it is declared."""
    monitor = Requests()

    def run() -> None:
        pulumi.runtime.set_mocks(monitor.mocks, monitor=monitor)

        @pulumi.runtime.test
        def declare() -> None:
            before()
            Network()

        declare()

    contextvars.copy_context().run(run)
    return monitor.requests


def without_aliases(request: Request) -> Request:
    copy = Request()
    copy.CopyFrom(request)
    for field in ("aliases", "stackTrace", "sourcePosition"):
        copy.ClearField(field)
    return copy


def test_without_former_types_only_the_aliases_differ() -> None:
    plain, leanly = requests_after(lambda: None), requests_after(lean.without_former_types)
    assert len(plain["net"].aliases) > 40
    assert {name for name, request in leanly.items() if request.aliases} == {"subnet", "zone"}
    assert leanly["net"].type == "azure-native:network:VirtualNetwork"
    assert leanly["net"].parent.endswith("menagerie:test:Network::network")
    assert leanly["subnet"].protect
    assert {name: without_aliases(request) for name, request in leanly.items()} == {
        name: without_aliases(request) for name, request in plain.items()
    }


def test_other_former_names_and_types_keep_their_aliases() -> None:
    requests = requests_after(lean.without_former_types)
    (renamed,), (moved,) = requests["subnet"].aliases, requests["zone"].aliases
    assert renamed.spec.name == "old"
    assert moved.spec.type == "azure-native:network:PrivateZone"


def test_debug_messages_are_dropped_and_others_reach_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    def run() -> None:
        logger = logging.getLogger("engine")
        pulumi.runtime.set_mocks(Echo(), logger=logger)
        pulumi.log.debug("before")
        lean.without_debug_messages()
        pulumi.log.debug("after")
        pulumi.log.warn("a warning")

    with caplog.at_level(logging.DEBUG, "engine"):
        contextvars.copy_context().run(run)
    messages = [record.message for record in caplog.records if record.name == "engine"]
    assert (messages.count("before"), messages.count("after"), messages.count("a warning")) == (1, 0, 1)


def test_garbage_collection_is_restored_after_a_failed_run() -> None:
    of_tests, of_python = gc.get_threshold(), (700, 10, 10)
    gc.set_threshold(*of_python)
    try:
        with pytest.raises(ValueError, match="of the run"), lean.few_collections():
            during = gc.get_threshold()
            raise ValueError("of the run")
        assert gc.get_threshold() == of_python
    finally:
        gc.set_threshold(*of_tests)
    assert during[0] > 10 * of_python[0]


def test_existing_logs_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "one.log").touch()
    lean.without_log_files(tmp_path)
    assert (tmp_path / "logs" / "one.log").is_file()


def declare() -> None:
    providers = [
        azure.Provider("azure", location="westeurope"),
        aws.Provider("aws", region="eu-west-1"),
        gcp.Provider("gcp", project="apes", region="europe-west4"),
    ]
    Network(pulumi.ResourceOptions(providers=providers))


@pytest.mark.engine
@pytest.mark.xdist_group("lean")
def test_lean_runs_plan_no_changes_to_a_normal_stack_and_leave_no_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("pulumi")
    with simulated_clouds(World()) as environment, lean.few_collections():
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        plain = plan.stack(declare, tmp_path, leanly=False)
        changes = Counter(plain.up().summary.resource_changes)
        assert (tmp_path / "home" / "logs").is_dir()
        (tmp_path / "home").rename(tmp_path / "plain-home")
        again = Counter(plan.stack(declare, tmp_path, leanly=True).preview().change_summary)
    assert again == {"same": changes["create"]}
    assert changes["create"] > 9
    assert (tmp_path / "home" / "logs").is_file()
