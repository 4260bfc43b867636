"""An environment that knows nothing of the user's clouds, backend or secrets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cluster.project import ROOT

# What programs need to run at all. Everything else is left out: each cloud's SDK and the engine read dozens of
# variables, and a list of those would never be whole.
_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_CACHE_HOME", "MENAGERIE_CACHE"})
_KEPT_PREFIXES = ("LC_", "PYTHON")

_OWN = {
    # The engine's memory: two of them at a time shall fit into half a GB with all else.
    "GOGC": "30",
    "MALLOC_ARENA_MAX": "2",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}


def variables(given: Mapping[str, str]) -> dict[str, str]:
    """Of a user's environment what a validation may see, and a passphrase that nobody knows."""
    kept = {name: value for name, value in given.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    return {**kept, **_OWN, "PULUMI_CONFIG_PASSPHRASE": secrets.token_urlsafe(32)}


def importing(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for a Python that is to find our packages."""
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))}


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """This process's environment is `variables` and `more` for the length of a block.

    The engine's, too: the Automation API adds what it is told to the process's own.
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
