"""The boot program as hosts have it, one file of all its modules."""

from __future__ import annotations

import importlib.abc
import importlib.util

from userdata.cloud_init import boot_program


class _Text(importlib.abc.InspectLoader):
    def get_source(self, fullname: str) -> str:
        return boot_program()


_spec = importlib.util.spec_from_loader("menagerie_boot", _Text())
assert _spec and _spec.loader
boot = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(boot)
