"""Helpers for tests of Google Cloud."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cluster.spec import Cluster
from cluster.tags import of_cluster
from controllers.autoscaler import clouds
from controllers.autoscaler.groups import Groups
from stacks.gcp.tags import labels
from tests.scheduling.clouds.door import Request
from tests.scheduling.clouds.fake_google import Google

ROOT = Path(__file__).resolve().parents[4]
ZONES = tuple(f"us-central1-{letter}" for letter in "abc")


def worker(cluster: Cluster, pool: str) -> dict[str, str]:
    """Return a template's labels: those from the program, and those that its provider adds to everything."""
    return of_cluster(cluster.name) | labels("worker") | {"pool": pool}


def groups(cluster: Cluster, nodes: Mapping[str, str] | None = None) -> Groups:
    return clouds.groups_of(cluster, lambda: nodes or {})


def sizes(google: Google) -> list[int]:
    return [group.target for _, group in sorted(google.groups.items())]


def is_change(request: Request) -> bool:
    return "/resize?" in request.path or "/deleteInstances?" in request.path
