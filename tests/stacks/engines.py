"""Engines that tests have started."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from sandbox.simcloud.faults import Faults

_T = TypeVar("_T")
_RUNS = 3

QUICK = {"GOGC": "200"}
"""Variables of an engine that may have memory for less CPU; a validation asks for the opposite (`stacks.validation.private`)."""


@contextmanager
def attached(plugin: str) -> Iterator[None]:
    """Let engines that begin within a block ask one process for keys (`stacks.validation.plugin`). They would start two for each run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_DEBUG_PROVIDERS", plugin)
        yield


def kill_engine() -> None:
    """The one that this process started."""
    for status in Path("/proc").glob("[0-9]*/status"):
        # Another process may end between the two looks.
        with suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            if fields["Name"] == "pulumi" and fields["PPid"] == str(os.getpid()):
                os.kill(int(status.parent.name), 9)


def until_met(faults: Faults, up: Callable[[], _T]) -> _T:
    """What that run gives which met the faults that wait for it. On a busy machine one may fail before: the engine gives a
    plugin ten seconds to answer (pulumi/pulumi, sdk/go/common/resource/plugin/plugin.go). That is told, and it is run again.
    """
    for _ in range(_RUNS):
        given = up()
        if not faults.unmet:
            return given
        warnings.warn(f"a run ended without {', '.join(faults.unmet)}: {given}", stacklevel=2)
    raise AssertionError(f"{_RUNS} runs ended without {', '.join(faults.unmet)}; the last: {given}")
