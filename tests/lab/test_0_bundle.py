"""A lab comes up from its bundle alone: an empty cache, and a network namespace with no device but loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.support import clone

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(1800)]

PASSWORD = {"MENAGERIE_BUNDLE_PASSWORD": "tests"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone, so that the bundle's key does not join this checkout's."""
    return clone(tmp_path / "clone")


@pytest.fixture
def network() -> Iterator[str]:
    """The name of a network namespace with loopback alone: no address, no route."""
    name = f"mgl-offline-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_lab_comes_up_from_a_bundle_without_a_route_or_a_cache(checkout: Path, network: str, tmp_path: Path) -> None:
    def run(*words: str, offline: bool, cache: Path | None = None) -> str:
        # nsenter, as `ip netns exec` hides control groups.
        inside = ["nsenter", f"--net=/run/netns/{network}"] if offline else []
        environment = {**os.environ, **PASSWORD, **({"MENAGERIE_CACHE": str(cache)} if cache else {})}
        command = [*inside, str(checkout / "menagerie"), *words]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    bundle, key, empty = str(tmp_path / "lab.bundle"), str(tmp_path / "key"), tmp_path / "cache"
    run("bundle", "lab", "--new-key", "--secret-key", key, "-o", bundle, offline=False)
    assert subprocess.run(["ip", "-n", network, "route"], capture_output=True, check=True).stdout == b""
    run("mirror", "push", bundle, "cache:", offline=True, cache=empty)
    try:
        run("up", "lab", "--yes", offline=True, cache=empty)
        status = json.loads(run("status", "lab", "--json", offline=True, cache=empty))
    finally:
        run("destroy", "lab", "--yes", offline=True, cache=empty)
    assert status["ok"]
