"""Operators that run verbs in a test's world."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.operations.conftest import outputs
from tests.operations.real_cluster import World


class Operator:
    """Substitute for `clients.access.Access`."""

    def __init__(self, world: World) -> None:
        self.outputs, self.api = outputs(), world.api

    @contextmanager
    def ssh_key_file(self) -> Iterator[None]:
        yield None
