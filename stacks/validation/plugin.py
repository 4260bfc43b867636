"""Serves keys and certificates, which are dynamic resources, with one plugin for all runs of an engine.

The engine would start two new plugins in each run, which costs a fifth of the time of a small stack.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.project import TOOLKIT
from stacks.validation.private import importing, variables

_PROGRAM = TOOLKIT / "stacks" / "plugins" / "attached.py"
_PACKAGE = "pulumi-python"


@contextmanager
def dynamic_resources() -> Iterator[str]:
    """Serve dynamic resources for a block; yield the value for PULUMI_DEBUG_PROVIDERS."""
    with subprocess.Popen(
        [sys.executable, "-u", str(_PROGRAM)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=importing(variables(os.environ)),
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            # A plugin's first line is its port.
            yield f"{_PACKAGE}:{int(process.stdout.readline())}"
        finally:
            process.kill()
