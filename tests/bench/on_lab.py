"""The lab that measurements and tests use: as its spec says or with changes of theirs; verbs that run on it beside them."""

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
    """A verb, as operators run it. CommandError where it fails."""
    done = subprocess.run([MENAGERIE, *verb], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"menagerie {' '.join(verb)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")


@contextmanager
def lab(say: Callable[[str], None]) -> Iterator[Cluster]:
    """The lab as its spec says. CommandError where it does not come up."""
    cluster = load_cluster(find_cluster(CLUSTER, ROOT))
    was_up = has_stack(cluster)
    say("the lab comes up" if not was_up else "on the lab that is up")
    run("up", cluster.name, "--json")
    try:
        yield cluster
    finally:
        if not was_up:
            run("destroy", cluster.name, "--yes")


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    """The lab's spec, copied below a folder, after `change` was given the document of its cluster.yaml."""
    there = folder / CLUSTER
    shutil.copytree(find_cluster(CLUSTER, ROOT).parent, there)
    path = there / "cluster.yaml"
    document = yaml.safe_load(path.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def autoscaler() -> Iterator[Callable[[], str]]:
    """`autoscaler run` as a service for the length of a block; the last that it said. CommandError where it ended by itself."""
    with tempfile.TemporaryFile("w+") as told:

        def said() -> str:
            told.seek(0)
            return told.read()[-2000:]

        command = [MENAGERIE, "autoscaler", "run", CLUSTER, "--yes"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=told, stderr=told) as process:
            try:
                yield said
                ended = process.poll()
            finally:
                process.terminate()
        if ended is not None:
            raise CommandError(f"autoscaler run ended with {ended}: {said()}")
