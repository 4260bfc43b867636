from __future__ import annotations

import grp
import importlib
import importlib.util
import os
import pwd
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


@pytest.fixture(scope="session", autouse=True)
def shared() -> Iterator[None]:
    """Provide module_utils under the name that modules import on a host."""
    folder = ROLES / "module_utils" / "menagerie_host"
    spec = importlib.util.spec_from_file_location(
        SHARED, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader
    sys.modules[SHARED] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[SHARED])
    yield
    for name in [name for name in sys.modules if name.startswith(SHARED)]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def host(shared: None) -> Callable[[str], ModuleType]:
    """Return a function that imports a shared module: host("files")."""
    return lambda name: importlib.import_module(f"{SHARED}.{name}")


@pytest.fixture(scope="session")
def module(shared: None) -> Callable[[str], ModuleType]:
    """Return a function that loads an Ansible module of ours as a Python module: module("host_state")."""
    loaded: dict[str, ModuleType] = {}

    def get(name: str) -> ModuleType:
        if name not in loaded:
            loaded[name] = _load(f"menagerie_module_{name}", ROLES / "modules" / f"{name}.py")
        return loaded[name]

    return get


@pytest.fixture
def own() -> str:
    """Return user:group of the user who runs the tests."""
    return f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(os.getgid()).gr_name}"
