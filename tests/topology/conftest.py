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


@pytest.fixture(scope="session")
def trained(build: Callable[..., Cluster]) -> Cluster:
    """A cluster for training: GPUs in the region and at a site, rails, and Ceph. Operators may enter the site only."""
    rails = {f"rail-{n}": {"pci": f"0000:{n}a:00.0"} for n in range(8)}
    disks = {"nvme": {"by_id": "nvme-SAMSUNG_MZQL2*", "count": 8, "min_size": "7TiB"}}
    teams = {"vision": {"block": "1TiB", "file": "1TiB"}, "speech": {"object": "1TiB"}}
    site = {
        "roce": {"gbit_s": 400, "rails": {"workers": rails}},
        "ceph": {"hosts": ["workers"], "disks": disks, "failure_domain": "host", "teams": teams},
    }
    plane = {
        "cloud": "aws",
        "region": "us-west-2",
        "zones": ["usw2-az1", "usw2-az2", "usw2-az3"],
        "machine": "m7i.large",
    }
    etcd = {role: {"machine": "i4i.xlarge", "disk": "local-nvme"} for role in ("main", "events")}
    pools = {
        "workers": {"hardware": "dgx-h100", "driver_branch": 580},
        "gpu": {"machine": "p5.48xlarge", "image": "ami-0123456789abcdef0", "max": 8, "rdma": True},
    }
    network = {"nodes": "10.77.0.0/16"}
    return build({"control_plane": plane, "etcd": etcd, "network": network, "sites": {"onprem": site}, "pools": pools})


@pytest.fixture(scope="session", params=["lab", "aws-small", "horus", "ibis", "jaguar", "hybrid", "trained"])
def drawn(request: pytest.FixtureRequest, hybrid: Cluster, trained: Cluster) -> Cluster:
    """The lab, examples, and the clusters above."""
    folder = "inventories" if request.param == "lab" else "examples"
    own = {"hybrid": hybrid, "trained": trained}.get(request.param)
    return own or load_cluster(ROOT / folder / request.param / "cluster.yaml")
