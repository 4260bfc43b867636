"""A cluster with a ledger, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.spec import Cluster as Spec
from tests.bookkeeping.surroundings import NODES, SPACES, World, node, stamp
from tests.metering.lives import START


@pytest.fixture
def spec(build: Callable[..., Spec]) -> Spec:
    tenancy = {"tenancy": {"directory": {"file": "people.yaml"}}, "metering": {}}
    return build({**tenancy, "pools": {"workers": {"price_hour": 2.0}}})


@pytest.fixture
def world() -> World:
    """A cluster with the lab's workers and a team, ten minutes before the beginning of the day."""
    world = World(START - 600)
    for name in ("worker-1", "worker-2", "worker-3"):
        world.cluster.write(NODES, node(name))
    labels = {"menagerie.dev/tenant": "team", "app.kubernetes.io/managed-by": "x", "menagerie.dev/team": "vision"}
    world.cluster.write(
        SPACES, {"metadata": {"name": "team-vision", "creationTimestamp": stamp(START - 900), "labels": labels}}
    )
    return world
