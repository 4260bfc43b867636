from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.neighbours import needed
from network.neighbours import Thresholds, sysctl_text, thresholds


def in_cloud(cloud, size=0):
    return {"control_plane": {"cloud": cloud}, "pools": {"cpu": {"machine": "m", "max": size}}}


def test_a_small_cluster_gets_the_floor(lab):
    assert thresholds(lab) == Thresholds(13107, 14745, 16384)


def test_the_largest_cluster_gets_the_thresholds_of_openai(build):
    assert thresholds(build(in_cloud("azure", 60_000))) == Thresholds(80_000, 90_000, 100_000)


def test_hosts_on_aws_may_drop_a_neighbour_at_once(build):
    cluster = build(in_cloud("aws"))
    assert thresholds(cluster, in_cloud=True) == Thresholds(0, 14745, 16384)
    assert thresholds(cluster).gc_thresh1 == 13107
    assert thresholds(build(in_cloud("gcp")), in_cloud=True).gc_thresh1 == 13107


def test_the_spec_overrides_each_threshold(build):
    assert thresholds(build({"neighbours": {"gc_thresh3": 4000}})) == Thresholds(3200, 3600, 4000)
    assert thresholds(build({"neighbours": {"gc_thresh1": 0}})) == Thresholds(0, 14745, 16384)
    assert thresholds(build({"neighbours": {"gc_thresh2": 500}})) == Thresholds(500, 500, 16384)
    chosen = {"gc_thresh1": 1, "gc_thresh2": 2, "gc_thresh3": 300_000}
    assert thresholds(build({"neighbours": chosen})) == Thresholds(1, 2, 300_000)


@given(st.integers(0, 99_000), st.integers(0, 500), st.sampled_from(["azure", "aws", "gcp"]))
def test_thresholds_grow_with_the_cluster_between_floor_and_cap(build, size, more, cloud):
    small, large = build(in_cloud(cloud, size)), build(in_cloud(cloud, size + more))
    for where in (False, True):
        fewer, more_hosts = thresholds(small, in_cloud=where), thresholds(large, in_cloud=where)
        assert fewer.gc_thresh1 <= more_hosts.gc_thresh1
        assert fewer.gc_thresh2 <= more_hosts.gc_thresh2
        assert fewer.gc_thresh3 <= more_hosts.gc_thresh3
        assert 8_192 <= fewer.gc_thresh2 < fewer.gc_thresh3
        assert 16_384 <= fewer.gc_thresh3 <= 100_000
        assert fewer.gc_thresh1 == 0 if cloud == "aws" and where else fewer.gc_thresh1 >= 4_096
        assert fewer.gc_thresh3 >= min(2 * needed(small), 100_000)


def test_both_address_families_are_set():
    assert sysctl_text(Thresholds(1, 2, 3)).splitlines()[1:] == [
        "net.ipv4.neigh.default.gc_thresh1 = 1",
        "net.ipv4.neigh.default.gc_thresh2 = 2",
        "net.ipv4.neigh.default.gc_thresh3 = 3",
        "net.ipv6.neigh.default.gc_thresh1 = 1",
        "net.ipv6.neigh.default.gc_thresh2 = 2",
        "net.ipv6.neigh.default.gc_thresh3 = 3",
    ]
