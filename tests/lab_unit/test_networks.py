"""Network namespaces of the kernel: existing ones are kept, leftovers of a killed run are replaced."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.lab import networks

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


@pytest.fixture
def name() -> Iterator[str]:
    name = f"of-a-test-{os.getpid()}"
    yield name
    networks.remove_namespace(name)


def _links(name: str) -> str:
    return subprocess.run(["ip", "-n", name, "link"], capture_output=True, text=True, check=True).stdout


def test_an_existing_namespace_keeps_its_links(name: str) -> None:
    networks.add_namespace(name)
    subprocess.run(["ip", "-n", name, "link", "add", "kept", "type", "bridge"], check=True)
    networks.add_namespace(name)
    assert "kept" in _links(name)


def test_a_file_without_a_namespace_is_replaced(name: str) -> None:
    Path("/run/netns").mkdir(exist_ok=True)
    Path("/run/netns", name).touch()
    networks.add_namespace(name)
    assert "LOOPBACK,UP" in _links(name)
