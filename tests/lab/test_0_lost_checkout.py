"""State in S3: the checkout that built a lab is deleted, and a new clone goes on with every verb."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.support import Run, clone
from tests.operations.record.conftest import KEY, make_bucket, versitygw

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(1800)]

__all__ = ["versitygw"]

BUCKET = "state-of-the-team"
Command = Callable[..., Run]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout. A lab belongs to the path of its checkout, so the second clone gets the same."""
    return clone(tmp_path / "checkout")


@pytest.fixture
def command(checkout: Path, versitygw: str, tmp_path: Path) -> Command:
    """The command, run in the checkout with the credentials of a team's backend."""
    make_bucket(versitygw, BUCKET)
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("of the team")
    environment = {
        **os.environ,
        **{f"AWS_{name.upper()}": value for name, value in json.loads(KEY).items()},
        "PULUMI_BACKEND_URL": f"s3://{BUCKET}?endpoint={versitygw}&s3ForcePathStyle=true&region=us-east-1",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase),
    }

    def run(*words: str) -> Run:
        done = subprocess.run(
            [str(checkout / "menagerie"), *words],
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run


def operations(command: Command) -> dict[str, Any]:
    """Return what the records say. The first checkout also has its own, of the time before there was a bucket."""
    ran = command("status", "lab", "operations", "--json")
    assert ran.code == 0, ran.err
    return {key: value for key, value in ran.json.items() if key != "where"}


def test_a_new_clone_does_everything_after_the_checkout_was_deleted(checkout: Path, command: Command) -> None:
    def done(*words: str) -> Run:
        ran = command(*words)
        assert ran.code == 0, ran.out + ran.err
        return ran

    try:
        done("up", "lab", "--yes")
        before = operations(command)
        shutil.rmtree(checkout)
        clone(checkout)

        assert done("status", "lab", "--json").json["ok"]
        assert operations(command) == before
        done("configure", "lab", "--yes")
        again = done("up", "lab", "--json").json
        assert (set(again["stack"]["changes"]), again["changed"]) == ({"same"}, 0)
        kubeconfig = done("kubeconfig", "lab").out.strip()
        nodes = ["get", "nodes", "--output", "name", "--kubeconfig", kubeconfig]
        kubectl = checkout / ".menagerie" / "bin" / "kubectl"
        assert subprocess.run([kubectl, *nodes], capture_output=True, text=True, check=True).stdout.startswith("node/")
        done("etcd", "backup", "lab")
    finally:
        ended = command("destroy", "lab", "--yes")
    assert ended.code == 0, ended.out + ended.err
    assert command("status", "lab").code != 0
