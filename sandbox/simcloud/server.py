"""Serve simulated clouds for the duration of a block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from sandbox.simcloud import aws, azure, gcp
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.servicer import Provider
from sandbox.simcloud.simulation import SimulatedCloud
from sandbox.simcloud.world import World

CLOUDS = {cloud.name: cloud for cloud in (aws.CLOUD, azure.CLOUD, gcp.CLOUD)}

# By default gRPC refuses messages over 4 MiB; the engine itself allows 400 MB.
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@contextmanager
def simulated_clouds(
    world: World,
    faults: Faults | None = None,
    offers: Offers | Callable[[], Offers] | None = None,
    clouds: Collection[str] = tuple(CLOUDS),
) -> Iterator[dict[str, str]]:
    """Serve `clouds` over `world`; yield the environment that makes an engine use them.

    offers: a function if they change during the block. clouds: of ``aws``, ``azure``, ``gcp``; the engine looks for a plugin
    for the others. Ports are on loopback, chosen by the system, and closed at the end of the block.
    """
    with ExitStack() as stack:
        ports = {}
        for name in clouds:
            simulation = SimulatedCloud(CLOUDS[name], world, offers or Offers())
            provider = Provider(simulation, faults or Faults())
            ports[CLOUDS[name].package] = stack.enter_context(_served(provider))
        yield {"PULUMI_DEBUG_PROVIDERS": ",".join(f"{package}:{port}" for package, port in ports.items())}


@contextmanager
def _served(provider: Provider) -> Iterator[int]:
    """Serve a provider on a port."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        server = grpc.server(pool, options=_OPTIONS)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield port
        finally:
            server.stop(grace=None).wait()
