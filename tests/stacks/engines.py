"""Helpers for engines that tests start."""

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
"""Variables for an engine that uses more memory and less CPU; a validation does the opposite (`stacks.validation.private`)."""


@contextmanager
def attached(plugin: str) -> Iterator[None]:
    """Let engines that start within a block use one process for keys (`stacks.validation.plugin`). They would start two per run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_DEBUG_PROVIDERS", plugin)
        yield


def kill_engine() -> None:
    """Kill the engine that this process started."""
    for status in Path("/proc").glob("[0-9]*/status"):
        # A process may end between listing and reading.
        with suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            if fields["Name"] == "pulumi" and fields["PPid"] == str(os.getpid()):
                os.kill(int(status.parent.name), 9)


def until_met(faults: Faults, up: Callable[[], _T]) -> _T:
    """Return the result of the first run in which all pending faults were injected.

    On a busy machine a run may fail before that: the engine gives a plugin ten seconds to answer (pulumi/pulumi,
    sdk/go/common/resource/plugin/plugin.go). Then this warns and runs it again.
    """
    for _ in range(_RUNS):
        result = up()
        if not faults.unmet:
            return result
        warnings.warn(f"a run ended without {', '.join(faults.unmet)}: {result}", stacklevel=2)
    raise AssertionError(f"{_RUNS} runs ended without {', '.join(faults.unmet)}; the last: {result}")
