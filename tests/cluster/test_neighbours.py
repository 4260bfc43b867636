"""How many neighbours a host can have, and tables that are too small for them."""

from __future__ import annotations

import pytest

from cluster.check import check
from cluster.neighbours import largest_network, needed
from cluster.spec import Host


def rack_of(size):
    """Return machines with the same address: only their number matters here."""
    host = Host.model_validate({"name": "gpu", "rack": "r1", "address": "10.78.1.11"})
    return {"workers": (host,) * size}


def test_needed_neighbours_include_the_largest_network_pods_and_gateways(build):
    cluster = build({"network": {"max_pods": 200}}, rack_of(2500))
    assert largest_network(cluster) == ("rack onprem/r1", 2500)
    assert needed(cluster) == 2500 + 200 + 2


def test_the_cloud_side_includes_its_load_balancer_and_pools_at_maximum_size(build):
    cluster = build({"pools": {"cpu": {"machine": "m", "min": 1, "max": 40}}})
    assert largest_network(cluster) == ("network.nodes", 2 + 3 + 3 + 1 + 40)


@pytest.mark.parametrize(("third", "refused"), [(2500 + 110 + 2, False), (2500 + 110 + 1, True)])
def test_a_table_one_entry_too_small_is_refused(build, third, refused):
    problems = check(build({"neighbours": {"gc_thresh3": third}}, rack_of(2500)))
    assert ("ARP-001" in {problem.code for problem in problems}) is refused


@pytest.mark.parametrize(("workers", "refused"), [(100_000 - 9 - 112, False), (100_000 - 9 - 111, True)])
def test_more_neighbours_than_known_to_work_are_refused_unless_the_spec_sets_them(build, workers, refused):
    cloud = {"pools": {"cpu": {"machine": "m", "max": workers}}}
    codes = {problem.code for problem in check(build(cloud))}
    assert ("ARP-001" in codes) is refused
    given = check(build(cloud | {"neighbours": {"gc_thresh3": 300_000}}))
    assert "ARP-001" not in {problem.code for problem in given}
