"""Hides this machine's credentials, and lets requests out only through the door."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from clients import clouds
from tests.scheduling.clouds.door import Door, Trust, Upstream, served

_SPOKEN = ("AWS_", "BOTO_", "AZURE_", "ARM_", "MSI_", "IDENTITY_", "GOOGLE_", "GCE_", "GCLOUD_", "CLOUDSDK_", "NO_GCE")


@pytest.fixture(scope="session")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust(tmp_path_factory.mktemp("trust"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without credentials: none in the environment, from programs on PATH, or from the machine's metadata."""
    for name in list(os.environ):
        if name.upper().startswith(_SPOKEN) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # On a machine that is busy with other tests, answers take longer.
    monkeypatch.setattr(clouds, "CONNECT_S", 100)
    monkeypatch.setattr(clouds, "READ_S", 100)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "100")
    monkeypatch.setenv("GCE_METADATA_IP", "127.0.0.1:9")
    return folder


@pytest.fixture
def opened(home: Path, trust: Trust, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Upstream], Door]]:
    """Return a function that opens the door to a cloud."""
    with ExitStack() as stack:

        def open_(upstream: Upstream) -> Door:
            door = stack.enter_context(served(Door(upstream), trust))
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
                monkeypatch.setenv(name, f"http://{door.at}")
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.setenv(name, "127.0.0.1")
            for name in ("REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"):
                monkeypatch.setenv(name, str(trust.bundle))
            return door

        yield open_


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record how long the libraries would have waited, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited
