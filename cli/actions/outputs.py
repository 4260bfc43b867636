"""`show outputs`: the outputs of a built cluster's stack."""

from __future__ import annotations

from cli.output import print_json
from cluster.spec import Cluster
from operations import stack


def show(cluster: Cluster, *, as_json: bool) -> None:
    """Print the outputs as JSON, with and without --json."""
    print_json(stack.access_to(cluster).outputs.model_dump(mode="json"))
