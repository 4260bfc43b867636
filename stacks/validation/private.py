"""An environment without the user's clouds, backend and secrets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cluster.project import TOOLKIT

# What programs need in order to run. Everything else is removed: each cloud's SDK and the engine read dozens of
# variables, and a list of those would never be complete.
_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_CACHE_HOME", "MENAGERIE_CACHE"})
_KEPT_PREFIXES = ("LC_", "PYTHON")

_OWN = {
    # Limits the engine's memory: two engines at a time, and everything else, must fit in half a GB.
    "GOGC": "30",
    "MALLOC_ARENA_MAX": "2",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}


def variables(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a user's environment that a validation may see, and a random passphrase."""
    kept = {name: value for name, value in given.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    return {**kept, **_OWN, "PULUMI_CONFIG_PASSPHRASE": secrets.token_urlsafe(32)}


def saving(faults: object | None) -> dict[str, str]:
    """Return variables for an engine that saves the state only at the end of a run, {} if calls to the cloud meet faults.

    After each step it would write the whole state, which takes two thirds of its CPU with 160 resources. Only for states
    that nobody needs after a killed run.
    """
    return {} if faults else {"PULUMI_SKIP_CHECKPOINTS": "true"}


def importing(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` for a Python that must find our packages."""
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (str(TOOLKIT), environment.get("PYTHONPATH"))))}


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Replace this process's environment with `variables` and `more` for a block.

    This also sets the engine's environment: the Automation API adds its variables to the process's own.
    """
    before = dict(os.environ)
    try:
        _become({**variables(before), **more})
        yield
    finally:
        _become(before)


def _become(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
