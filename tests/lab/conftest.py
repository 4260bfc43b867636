"""One lab for all tests of this folder: brought up once, used in file order, destroyed at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.toolkit import killed_up
from tests.lab.support import Run, menagerie, traces


@pytest.fixture(scope="session")
def before() -> dict[str, set[str]]:
    """What the machine has without a lab. First destroys a lab that this checkout left running."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root: it creates network namespaces, mounts and cgroups")
    menagerie("destroy", "lab", "--yes")
    return traces()


@pytest.fixture(scope="session")
def interrupted(before: dict[str, set[str]]) -> Run:
    """An `up` from scratch that was interrupted halfway, as by Ctrl-C, after one that was killed."""
    killed_up("lab", 6)
    return menagerie("up", "lab", "--yes", interrupt_after_s=12)


@pytest.fixture(scope="session")
def lab(interrupted: Run) -> Iterator[Run]:
    """The result of the `up` that brought the lab up, after some that were interrupted."""
    killed_up("lab", 20)
    yield menagerie("up", "lab", "--json")
    menagerie("destroy", "lab", "--yes")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SSH key of the operator and of the hosts."""
    path = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path
