"""What a plan need not pay for.

Most CPU that Pulumi 3.259 and its SDKs spend on a resource goes to what this toolkit has no use for.
``python -m tests.bench.planning`` measures a plan with and without.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import settings
from pulumi.runtime.proto import engine_pb2

_ALLOCATIONS = 100_000
_VERSION = re.compile(r"azure-native:\w+/v\d{8}(preview)?:")


def program(declare: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """The program of a stack, for the Automation API or `pulumi.run`; to be run within `few_collections`."""

    async def run() -> None:
        without_debug_messages()
        declare()
        # If the program ends before the runtime has begun to register what it declared, the runtime waits for the
        # first of all attributes of all resources, and then over again for each (`wait_for_rpcs`).
        await asyncio.sleep(0)

    return run


def without_former_types() -> None:
    """Declare what follows without the types that azure-native has for versions of an API. For the start of a program.

    It gives a resource an alias for each version that its type ever had, up to 113, so that the class of a version can
    be exchanged for another. Our stacks use no class of a version. All other aliases stay: a type's former name (710
    of the 31,507 in azure-native 3.29, as PrivateZone in `network`) and a resource's own.
    """
    pulumi.runtime.register_stack_transformation(_without_former_types)


def _without_former_types(declared: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    if not declared.opts.aliases:
        return None
    opts = pulumi.ResourceOptions.merge(declared.opts, None)
    opts.aliases = [alias for alias in declared.opts.aliases if not _only_names_a_version(alias)]
    return pulumi.ResourceTransformationResult(declared.props, opts)


def _only_names_a_version(alias: pulumi.Input[str | pulumi.Alias]) -> bool:
    if not isinstance(alias, pulumi.Alias) or not isinstance(alias.type_, str):
        return False
    others: tuple[object, ...] = (alias.name, alias.parent, alias.stack, alias.project)
    return _VERSION.match(alias.type_) is not None and all(part is ... for part in others)


def without_debug_messages() -> None:
    """Send the engine no messages that it shows to nobody but with ``--debug``.

    The runtime sends four a resource, each in a call of its own that it waits for. Where the program then waits for
    none, more resources are under way at once, so this is for use within `few_collections`.
    """
    settings.SETTINGS.engine = _Quiet(settings.get_engine())


class _Quiet:
    """An engine, as the runtime sees it."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def Log(self, request: engine_pb2.LogRequest) -> object:
        return None if request.severity == engine_pb2.DEBUG else self._engine.Log(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage cycles seldom while the engine runs.

    Each attribute of each resource is a task over four futures until the engine has answered. None of it is garbage,
    and CPython by default looks through all of it time and again.
    """
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def in_a_process_of_its_own() -> None:
    """As `few_collections`, for a process that ends with the run."""
    gc.set_threshold(_ALLOCATIONS)


def without_log_files(home: Path) -> None:
    """Let the engine write no log of its own into `home` (PULUMI_HOME), if it has not yet begun to.

    It writes whatever it could say, every resource's properties among it, to a file a run, compressed and encrypted:
    half of its CPU for a resource. No setting turns that off (pulumi 3.259, `StartLogging`). Where it cannot make the
    folder ``logs`` it goes on without, and here a file has that name.
    """
    logs = home / "logs"
    if not logs.exists():
        logs.touch()
