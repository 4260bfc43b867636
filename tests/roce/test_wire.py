"""The arithmetic compared with published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.roce import MTUS, Device, Fabric, Roce, mtu_over
from network.roce import wire

RAILS = {"gpu": {"rail-0": Device(pci="0000:1a:00.0")}}


def test_the_limit_matches_the_measurement_on_connectx_6_dx_at_100_gbit() -> None:
    """ "To Spray or Not to Spray" (Juniper, 2023): 98.01 Gbit/s of ib_write_bw without adaptive routing, at MTU 4096."""
    assert round(100 * wire.limit(4096), 2) == 98.01


def test_with_a_reth_in_every_packet_it_matches_the_measurement_with_adaptive_routing() -> None:
    assert round(100 * wire.limit(4096, message=4096), 2) == 97.66


@pytest.mark.parametrize(("mtu", "percent"), [(4096, 98.04), (2048, 96.15), (1024, 92.59)])
def test_long_messages_come_close_to_the_limit_of_packets(mtu: int, percent: float) -> None:
    assert round(100 * wire.limit(mtu, message=2**30), 2) == percent


def test_the_mark_is_97_percent_at_4096_and_no_smaller_mtu_reaches_it() -> None:
    assert wire.mark(4096) == wire.MARK
    assert all(wire.limit(mtu) < wire.MARK for mtu in MTUS if mtu < 4096)


@given(st.sampled_from(MTUS), st.integers(1, 2**24))
def test_the_mark_is_below_the_limit_and_scales_with_it(mtu: int, message: int) -> None:
    assert 0 < wire.mark(mtu, message) < wire.limit(mtu, message) < 1


@pytest.mark.parametrize(("link", "mtu"), [(1500, 1024), (4191, 2048), (4192, 4096), (9000, 4096), (300, 0)])
def test_linux_uses_the_largest_mtu_with_room_for_every_header(link: int, mtu: int) -> None:
    assert mtu_over(link) == mtu


def test_the_tos_of_the_usual_mark_is_106_and_no_tos_lacks_ecn() -> None:
    assert Roce(rails=RAILS).tos == 106
    assert all(Roce(rails=RAILS, dscp=dscp).tos & 0b11 == 0b10 for dscp in range(64))


def test_only_a_lossless_fabric_has_priorities_with_pause() -> None:
    assert Roce(rails=RAILS).pfc == (3,)
    assert Roce(rails=RAILS, fabric=Fabric.LOSSY).pfc == ()
