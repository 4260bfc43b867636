"""Which pools have CPUs of their own for pods."""

from __future__ import annotations

import pytest

from components.workers.kubelet import of_pool

RACK = {"rails": {"workers": {"rail-0": {"interface": "ens1"}}}}


def told(cluster, pool):
    found = of_pool(cluster.spec, pool)
    return found["kubelet_cpu_manager"], found["kubelet_topology_manager"]


@pytest.mark.parametrize(
    ("changes", "pool", "wanted"),
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
def test_machines_with_rdma_give_whole_cpus_and_the_spec_decides(build, changes, pool, wanted):
    assert told(build(changes), pool) == wanted


@pytest.mark.parametrize(("machine", "wanted"), [("p5.48xlarge", "static"), ("c5.4xlarge", "none")])
def test_the_catalogue_says_which_those_are(build, machine, wanted):
    plane = {"cloud": "aws", "region": "us-east-1", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"]}
    image = {"image": "ami-0123456789abcdef0"} if machine.startswith("p5") else {}
    changes = {"name": "horus", "control_plane": plane, "network": {"nodes": "10.32.0.0/16"}}
    cluster = build({**changes, "pools": {"x": {"machine": machine, "max": 1, **image}}})
    assert told(cluster, "x")[0] == wanted
