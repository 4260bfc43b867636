"""The lab for measurements and tests: unchanged or with a changed spec, and verbs that run on it meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from cluster.load import find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.stack import has_stack
from tests.bench.group import CommandError
from tests.bench.toolkit import MENAGERIE

CLUSTER = "lab"


def run(*verb: str) -> None:
    """Run a verb as operators do. CommandError if it fails."""
    done = subprocess.run([MENAGERIE, *verb], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"menagerie {' '.join(verb)} exited with {done.returncode}: {done.stderr.strip()[-2000:]}")


@contextmanager
def lab(say: Callable[[str], None]) -> Iterator[Cluster]:
    """Provide the lab as in its spec. CommandError if it does not come up."""
    cluster = load_cluster(find_cluster(CLUSTER, ROOT))
    was_up = has_stack(cluster)
    say("bringing the lab up" if not was_up else "using the lab that is up")
    run("up", cluster.name, "--json")
    try:
        yield cluster
    finally:
        if not was_up:
            run("destroy", cluster.name, "--yes")


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    """Copy the lab's spec below a folder, and apply `change` to its cluster.yaml. Return the file's path."""
    target = folder / CLUSTER
    shutil.copytree(find_cluster(CLUSTER, ROOT).parent, target)
    path = target / "cluster.yaml"
    document = yaml.safe_load(path.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def autoscaler() -> Iterator[Callable[[], str]]:
    """Run `autoscaler run` for a block. Provide a function that returns its last output. CommandError if it exits early."""
    with tempfile.TemporaryFile("w+") as output:

        def last_output() -> str:
            output.seek(0)
            return output.read()[-2000:]

        command = [MENAGERIE, "autoscaler", "run", CLUSTER, "--yes"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process:
            try:
                yield last_output
                code = process.poll()
            finally:
                process.terminate()
        if code is not None:
            raise CommandError(f"autoscaler run exited with {code}: {last_output()}")
