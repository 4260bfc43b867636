"""Programs as hosts have them: each is one file with all its modules."""

from __future__ import annotations

import importlib.abc
import importlib.util
from collections.abc import Iterable
from typing import Any

from cluster.files import HostFile
from components.userdata import applying, refreshing
from components.userdata.cloud_init import boot_program


class _Text(importlib.abc.InspectLoader):
    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text


def _loaded(name: str, text: str) -> Any:
    spec = importlib.util.spec_from_loader(name, _Text(text))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _program(files: Iterable[HostFile], name: str) -> Any:
    return _loaded(f"menagerie_{name}", next(file.text for file in files if file.path.endswith(name)))


boot = _loaded("menagerie_boot", boot_program())


def apply() -> Any:
    """Return menagerie-apply, with its own globals."""
    return _program(applying.files(), "apply")


def refresh() -> Any:
    """Return menagerie-refresh, with its own globals."""
    return _program(refreshing.files(), "refresh")
