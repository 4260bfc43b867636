from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROLES = Path(__file__).parents[2] / "roles"
SHARED = "ansible.module_utils.menagerie_host"


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def shared() -> Iterator[ModuleType]:
    """module_utils as the modules import it on a host."""
    sys.modules[SHARED] = _load(SHARED, ROLES / "module_utils" / "menagerie_host.py")
    yield sys.modules[SHARED]
    del sys.modules[SHARED]


@pytest.fixture(scope="session")
def module(shared: ModuleType) -> Callable[[str], ModuleType]:
    """module("host_files"): an Ansible module of ours as a Python module."""
    loaded: dict[str, ModuleType] = {}

    def get(name: str) -> ModuleType:
        if name not in loaded:
            loaded[name] = _load(f"menagerie_module_{name}", ROLES / "modules" / f"{name}.py")
        return loaded[name]

    return get
