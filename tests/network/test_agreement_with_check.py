"""`cluster` may import nothing, so its checks compute these again: both must draw the same line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from network.mtu import derived
from network.neighbours import needed


def found(cluster, code):
    return [problem for problem in check(cluster) if problem.code == code]


@given(st.integers(1280, 9216), st.integers(1280, 9216), st.integers(640, 9216), st.booleans(), st.booleans())
def test_check_refuses_the_first_mtu_that_the_chain_has_no_room_for(build, cloud, link, uplink, one_rack, cloud_pool):
    changes = {
        "network": {"link_mtu": cloud},
        "sites": {"onprem": {"link_mtu": link, "uplink_mtu": uplink, "racks": {"r2": None} if one_rack else {}}},
        "pools": {"cpu": {"machine": "lab-small", "max": 2}} if cloud_pool else {},
    }
    largest = derived(build(changes))

    def with_mtu(mtu):
        return build(changes | {"network": {"link_mtu": cloud, "flannel": {"mtu": mtu}}})

    assert not found(with_mtu(largest), "NET-009")
    assert found(with_mtu(largest + 1), "NET-009")


@given(st.integers(0, 90_000), st.integers(1, 500))
def test_check_refuses_the_first_table_that_is_too_small(build, workers, max_pods):
    changes = {"network": {"max_pods": max_pods}, "pools": {"cpu": {"machine": "m", "max": workers}}}
    need = needed(build(changes))
    assert not found(build(changes | {"neighbours": {"gc_thresh3": need}}), "ARP-001")
    assert found(build(changes | {"neighbours": {"gc_thresh3": need - 1}}), "ARP-001")
