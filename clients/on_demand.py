"""Load parts of a library when they are used, although the library itself imports them all.

`import kubernetes` (37.0) loads clients for kubeconfigs with Google's and OAuth's libraries, and more. Few commands use these
parts, and loading them took a fifth of the CPU time in which `menagerie status` starts.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

KUBERNETES = ("config", "dynamic", "informer", "leaderelection", "stream", "watch")
"""Parts of Kubernetes' library that no other part needs."""
_LOCK = threading.RLock()


def postpone(library: str, parts: tuple[str, ...]) -> None:
    """Load these parts of a library when one of their attributes is first read. Call it before the library is imported."""
    whole = PathFinder.find_spec(library)
    places = whole.submodule_search_locations if whole else None
    for name in (f"{library}.{part}" for part in parts):
        spec = PathFinder.find_spec(name, places) if places and name not in sys.modules else None
        if spec:
            module = _Part(name)
            module.__dict__.update(importlib.util.module_from_spec(spec).__dict__)
            sys.modules[name] = module


class _Part(ModuleType):
    """A module that runs when one of its attributes is missing. What runs it may read the attributes that exist already."""

    _state = "postponed"

    def _run(self) -> None:
        if self._state == "postponed":
            self._state = "running"
            try:
                assert self.__spec__ and self.__spec__.loader
                self.__spec__.loader.exec_module(self)
                self._state = "loaded"
            finally:
                if self._state == "running":
                    self._state = "postponed"

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            with _LOCK:
                self._run()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
