"""Saves CPU and I/O that a plan does not need.

Pulumi 3.259 and its SDKs spend most of their CPU per resource on features that this toolkit does not use.
``python -m tests.bench.planning`` measures a plan with and without these savings.
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
    """Return the program of a stack for the Automation API or `pulumi.run`; run it within `few_collections`."""

    async def run() -> None:
        without_debug_messages()
        declare()
        # If the program ends before the runtime has started to register what it declared, the runtime waits for the first
        # of all attributes of all resources, and then starts over for each (`wait_for_rpcs`).
        await asyncio.sleep(0)

    return run


def without_former_types() -> None:
    """Drop azure-native's aliases for API versions from everything declared after this. Call it at the start of a program.

    azure-native gives a resource an alias for each version that its type ever had, up to 113, so that the class of one
    version can replace that of another. Our stacks use no versioned classes. All other aliases stay: former names of a
    type (710 of the 31,507 in azure-native 3.29, such as PrivateZone in `network`) and those of a resource.
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
    """Send the engine no debug messages: it shows them only with ``--debug``.

    The runtime sends four per resource, each in a separate call that it waits for. Without these waits more resources
    are in progress at the same time, so use this within `few_collections`.
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
    """Run the garbage collector rarely while the engine runs.

    Each attribute of each resource is a task over four futures until the engine has answered. None of it is garbage,
    and CPython by default traverses all of it again and again.
    """
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def in_a_process_of_its_own() -> None:
    """Do as `few_collections`, for a process that ends with the run."""
    gc.set_threshold(_ALLOCATIONS)


def without_log_files(home: Path) -> None:
    """Prevent the engine from writing its log to `home` (PULUMI_HOME), unless a log folder already exists.

    It writes everything it could report, including every resource's properties, to one compressed and encrypted file per
    run: half of its CPU per resource. No setting turns this off (pulumi 3.259, `StartLogging`). It runs without the log
    if it can't create the folder ``logs``, so this creates a file with that name.
    """
    logs = home / "logs"
    if not logs.exists():
        logs.touch()
