"""A cluster with workers at a site and in the region, and the source of its programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.spec import Cluster

POOL = {
    "machine": "c5.4xlarge",
    "max": 5,
    "labels": {"openai.org/location": "aws-us-east-1", "a": "b"},
    "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
}


@pytest.fixture(scope="session")
def source() -> ArtefactSource:
    sums = {artefact.source: f"{number:064x}" for number, artefact in enumerate(catalogue().values())}
    return ArtefactSource("http://10.79.1.10/mirror", sums, "10.79.1.10:5000")


@pytest.fixture(scope="session")
def hybrid(build: Callable[..., Cluster]) -> Cluster:
    return build(
        {
            "name": "horus",
            "control_plane": {
                "cloud": "aws",
                "region": "us-east-1",
                "zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            },
            "network": {"nodes": "10.32.0.0/16"},
            "pools": {"cpu": POOL},
        }
    )
