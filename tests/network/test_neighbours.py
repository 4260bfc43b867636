from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.spec import Host
from network.neighbours import Thresholds, domains, needed, sysctl_text, thresholds


def rack_of(size):
    """Machines with one address: only their number matters here."""
    host = Host.model_validate({"name": "gpu", "rack": "r1", "address": "10.78.1.11"})
    return {"workers": (host,) * size}


def in_cloud(cloud, size=0):
    return {"control_plane": {"cloud": cloud}, "pools": {"cpu": {"machine": "m", "max": size}}}


def test_a_small_cluster_gets_the_floor(lab):
    assert thresholds(lab) == Thresholds(13107, 14745, 16384)


def test_the_largest_network_counts_with_the_pods_and_the_gateways(build):
    cluster = build({"network": {"max_pods": 200}}, rack_of(2500))
    assert domains(cluster) == {"cloud": 9, "onprem/r1": 2500}
    assert needed(cluster) == 2500 + 200 + 2


def test_the_largest_cluster_gets_what_openai_set(build):
    assert thresholds(build(in_cloud("azure", 60_000))) == Thresholds(80_000, 90_000, 100_000)


def test_hosts_on_aws_may_forget_a_neighbour_at_once(build):
    cluster = build(in_cloud("aws"))
    assert thresholds(cluster, in_cloud=True) == Thresholds(0, 14745, 16384)
    assert thresholds(cluster).gc_thresh1 == 13107
    assert thresholds(build(in_cloud("gcp")), in_cloud=True).gc_thresh1 == 13107


def test_the_spec_overrides_each_threshold(build):
    assert thresholds(build({"neighbours": {"gc_thresh3": 4000}})) == Thresholds(3200, 3600, 4000)
    assert thresholds(build({"neighbours": {"gc_thresh1": 0}})) == Thresholds(0, 14745, 16384)
    assert thresholds(build({"neighbours": {"gc_thresh2": 500}})) == Thresholds(500, 500, 16384)
    chosen = {"gc_thresh1": 1, "gc_thresh2": 2, "gc_thresh3": 3}
    assert thresholds(build({"neighbours": chosen})) == Thresholds(1, 2, 3)


def test_thresholds_out_of_order_are_refused(build):
    with pytest.raises(ValueError, match="gc_thresh1 90000, gc_thresh2 14745 and gc_thresh3 16384 must rise"):
        thresholds(build({"neighbours": {"gc_thresh1": 90_000}}))


def test_more_neighbours_than_any_table_is_known_to_hold_are_refused_unless_the_spec_sets_them(build):
    cloud = in_cloud("azure", 100_000)
    with pytest.raises(ValueError, match=r"on cloud can have 100121 neighbours.*split that network, or set"):
        thresholds(build(cloud))
    assert thresholds(build(cloud | {"neighbours": {"gc_thresh3": 300_000}})).gc_thresh3 == 300_000


@given(st.integers(0, 99_000), st.integers(0, 500), st.sampled_from(["azure", "aws", "gcp"]))
def test_thresholds_rise_with_the_cluster_and_stay_between_floor_and_cap(build, size, more, cloud):
    small, large = build(in_cloud(cloud, size)), build(in_cloud(cloud, size + more))
    for where in (False, True):
        one, other = thresholds(small, in_cloud=where), thresholds(large, in_cloud=where)
        assert one.gc_thresh1 <= other.gc_thresh1
        assert one.gc_thresh2 <= other.gc_thresh2
        assert one.gc_thresh3 <= other.gc_thresh3
        assert 8_192 <= one.gc_thresh2 < one.gc_thresh3
        assert 16_384 <= one.gc_thresh3 <= 100_000
        assert one.gc_thresh1 == 0 if cloud == "aws" and where else one.gc_thresh1 >= 4_096
        assert one.gc_thresh3 >= min(2 * needed(small), 100_000)


def test_both_address_families_are_set():
    assert sysctl_text(Thresholds(1, 2, 3)).splitlines()[1:] == [
        "net.ipv4.neigh.default.gc_thresh1 = 1",
        "net.ipv4.neigh.default.gc_thresh2 = 2",
        "net.ipv4.neigh.default.gc_thresh3 = 3",
        "net.ipv6.neigh.default.gc_thresh1 = 1",
        "net.ipv6.neigh.default.gc_thresh2 = 2",
        "net.ipv6.neigh.default.gc_thresh3 = 3",
    ]
