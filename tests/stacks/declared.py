"""What a cluster's program declares, without an engine: as in a preview of a cluster that is not built yet."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable
from typing import Any

import pulumi
from pulumi.runtime import rpc, settings
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks
from pulumi.runtime.proto import resource_pb2

from cluster.spec import Cluster
from operations.costs import PricedResource
from sandbox.simcloud.rules import Settings
from sandbox.simcloud.server import CLOUDS
from sandbox.simcloud.simulation import SimulatedCloud
from sandbox.simcloud.values import Unknown, plain
from sandbox.simcloud.world import World
from stacks.program import declare
from stacks.validation.offers import of_catalogue


def resources(cluster: Cluster) -> tuple[PricedResource, ...]:
    """Return everything that the program declares."""
    monitor = _Listener(_Cloud(cluster))
    contextvars.copy_context().run(_run, cluster, monitor)
    return tuple(monitor.heard)


def _run(cluster: Cluster, monitor: _Listener) -> None:
    pulumi.runtime.set_mocks(monitor.mocks, monitor=monitor, preview=True)
    settings.SETTINGS.callbacks = _NeverCalls()

    @pulumi.runtime.test
    def program() -> None:
        declare(cluster)

    program()


class _Cloud(Mocks):
    """The simulated cloud's answers to a preview, without checks."""

    def __init__(self, cluster: Cluster) -> None:
        plane = cluster.spec.control_plane
        self._settings = Settings("123456789012", plane.region)
        self._cloud = SimulatedCloud(CLOUDS[plane.cloud.value], World(), of_catalogue())

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        outputs = args.inputs
        if args.typ.startswith(f"{self._cloud.cloud.package}:"):
            outputs = _known(self._cloud.planned(args.typ, args.inputs, {}, {}).items())
        return f"{args.name}-id", outputs

    def call(self, args: MockCallArgs) -> dict[str, Any]:
        return _known(self._cloud.invoke(self._settings, args.token, args.args).items())


def _known(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: plain(value) for key, value in values if not isinstance(value, Unknown)}


class _Listener(MockMonitor):
    """Hears what is declared."""

    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self.heard: list[PricedResource] = []

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceResponse:
        inputs = rpc.deserialize_properties(request.object)
        self.heard.append(PricedResource(request.type, request.name, request.parent, inputs))
        return super().RegisterResource(request)


class _NeverCalls:
    """Takes hooks, which an engine calls after errors."""

    def register_error_hook(self, hook: pulumi.ErrorHook) -> None: ...

    async def shutdown(self) -> None: ...
