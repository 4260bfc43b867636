"""The lab that measurements use: the one that is up, or one of their own that they take away afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.group import CommandError
from bench.toolkit import MENAGERIE
from cluster.load import find_cluster, load_cluster
from cluster.spec import Cluster
from operations.access import ROOT
from operations.stack import has_stack

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
