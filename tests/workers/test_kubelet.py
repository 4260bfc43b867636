"""Which pools give pods exclusive CPUs."""

from __future__ import annotations

import pytest

from components.workers.kubelet import of_pool

RACK = {"rails": {"workers": {"rail-0": {"interface": "ens1"}}}}


def policies(cluster, pool):
    variables = of_pool(cluster.spec, pool)
    return variables["kubelet_cpu_manager"], variables["kubelet_topology_manager"]


@pytest.mark.parametrize(
    ("changes", "pool", "expected"),
    [
        ({}, "workers", ("none", "none")),
        ({"sites": {"onprem": {"roce": RACK}}}, "workers", ("static", "best-effort")),
        ({"pools": {"workers": {"kubelet": {"cpu_manager": "static"}}}}, "workers", ("static", "best-effort")),
        ({"pools": {"workers": {"kubelet": {"topology_manager": "restricted"}}}}, "workers", ("none", "restricted")),
        (
            {"sites": {"onprem": {"roce": RACK}}, "pools": {"workers": {"kubelet": {"cpu_manager": "none"}}}},
            "workers",
            ("none", "none"),
        ),
        ({"pools": {"cpu": {"machine": "m", "max": 1}}}, "cpu", ("none", "none")),
    ],
)
def test_machines_with_rdma_give_exclusive_cpus_unless_the_spec_decides(build, changes, pool, expected):
    assert policies(build(changes), pool) == expected


@pytest.mark.parametrize(("machine", "expected"), [("p5.48xlarge", "static"), ("c5.4xlarge", "none")])
def test_in_the_region_the_catalogue_decides(build, machine, expected):
    plane = {"cloud": "aws", "region": "us-east-1", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"]}
    image = {"image": "ami-0123456789abcdef0"} if machine.startswith("p5") else {}
    changes = {"name": "horus", "control_plane": plane, "network": {"nodes": "10.32.0.0/16"}}
    cluster = build({**changes, "pools": {"x": {"machine": machine, "max": 1, **image}}})
    assert policies(cluster, "x")[0] == expected
