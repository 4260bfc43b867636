"""Clusters of every size to draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster

ROOT = Path(__file__).parents[2]


def _vpn(number: int, routers: int) -> dict[str, object]:
    edges = {
        f"edge-{n}": {"address": f"203.0.113.{number * 10 + n}", "psk": {"secret": f"psk-{n}"}} for n in range(routers)
    }
    return {"asn": 65010 + number, "inside": f"169.254.21.{number * 64}/26", "routers": edges}


@pytest.fixture(scope="session")
def hybrid(build: Callable[..., Cluster]) -> Cluster:
    """A cluster with everything: workers in the region and at two joined sites, and names that are too long."""
    racks = {f"row-{n}": f"10.90.{n}.0/24" for n in range(200)}
    pool = {
        "machine": "Standard_D8s_v5",
        "max": 90,
        "zones": [1],
        "spot": True,
        "placement": "compact",
        "labels": {"openai.org/" + "long-label-name" * 3: "value-" * 10},
    }
    sites = {
        "onprem": {"vpn": _vpn(0, 2)},
        "second": {"racks": racks, "vpn": _vpn(1, 5)},
        "idle": {"racks": {"r1": "10.99.1.0/24"}},
    }
    return build(
        {
            "control_plane": {"cloud": "azure", "region": "eastus2", "zones": [1, 2]},
            "etcd": {"main": {"members": 5}, "events": {"hosts": "main"}},
            "network": {"nodes": "10.77.0.0/16"},
            "sites": sites,
            "pools": {"cpu": pool, "gpu-" + "x" * 59: {"site": "second", "hosts": "gpu.yaml"}},
        }
    )


@pytest.fixture(scope="session", params=["lab", "horus", "ibis", "jaguar", "hybrid"])
def drawn(request: pytest.FixtureRequest, hybrid: Cluster) -> Cluster:
    """The lab, each larger example, and `hybrid`."""
    folder = "inventories" if request.param == "lab" else "examples"
    return hybrid if request.param == "hybrid" else load_cluster(ROOT / folder / request.param / "cluster.yaml")
