"""What a drawing shows of a cluster: GPUs, rails, Ceph, who may enter, and the legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from cluster import hardware
from cluster.spec import Cluster
from components.drawing.layout import draw
from components.drawing.shapes import Box, Drawing, Group, Text
from tests.flows.support import PUBLIC, SHAPES
from tests.topology.support import area, meet

AZURE: dict[str, Any] = {"cloud": "azure", "region": "eastus2", "zones": [1, 2, 3]}
REGION_ONLY: dict[str, Any] = {
    "control_plane": AZURE,
    "network": {"nodes": "10.77.0.0/16"},
    "sites": None,
    "pools": {"workers": None, "cpu": {"machine": "Standard_D8s_v5", "max": 3}},
}


def groups(cluster: Cluster) -> dict[str, Group]:
    return {group.id: group for group in draw(cluster).groups}


def words(group: Group) -> str:
    """Return a group's text, with lines joined as before they were wrapped."""
    return " ".join(shape.text for shape in group.shapes if isinstance(shape, Text))


def kinds_of_lines(drawing: Drawing) -> set[str]:
    """Return the last class of each line that is drawn: `to-etcd`, `tunnel`."""
    return {group.kind.split()[-1] for group in drawing.groups if group.kind.split()[0] in ("flow", "tunnel")}


def test_every_pool_with_gpus_shows_their_kind_and_number(drawn: Cluster) -> None:
    cards = groups(drawn)
    for name, pool in drawn.spec.pools.items():
        expected = hardware.of_pool(drawn.spec.control_plane.cloud, pool)
        if expected and expected.gpus:
            machines = pool.max if pool.site is None else len(drawn.hosts[name])
            text = words(cards[f"pool-{name}"])
            assert f"{expected.gpus.count} × {expected.gpus.product} each" in text
            assert f"{expected.gpus.count * machines:,} GPUs" in text


def test_pools_without_gpus_show_none(drawn: Cluster) -> None:
    cards = groups(drawn)
    for name, pool in drawn.spec.pools.items():
        expected = hardware.of_pool(drawn.spec.control_plane.cloud, pool)
        if expected is None or expected.gpus is None:
            assert "GPU" not in words(cards[f"pool-{name}"])


def test_gpus_that_the_hardware_catalogue_omits_have_the_cloud_s_name(build: Callable[..., Cluster]) -> None:
    pools = {"workers": None, "amd": {"machine": "Standard_ND96isr_MI300X_v5", "max": 2}}
    card = groups(build(REGION_ONLY | {"pools": pools}))["pool-amd"]
    assert "8 × MI300X each" in words(card)
    assert "up to 16 GPUs" in words(card)


def test_the_legend_explains_every_kind_of_line_and_no_other(drawn: Cluster) -> None:
    drawing = draw(drawn)
    entries = {group.id.removeprefix("legend-") for group in drawing.groups if group.id.startswith("legend-")}
    assert entries == kinds_of_lines(drawing) | {"joined"}
    assert all(words(group) for group in drawing.groups if group.id.startswith("legend-"))


@settings(max_examples=10, deadline=None)
@given(SHAPES)
def test_the_legend_of_clusters_of_any_shape_explains_every_kind_of_line(
    build: Callable[..., Cluster], changes: Mapping[str, object]
) -> None:
    drawing = draw(build(changes))
    ids = {group.id for group in drawing.groups}
    assert {f"legend-{kind}" for kind in kinds_of_lines(drawing)} <= ids


def test_the_legend_s_samples_look_like_the_lines(drawn: Cluster) -> None:
    for id_, group in groups(drawn).items():
        if id_.startswith("legend-") and id_ != "legend-joined":
            assert group.kind == f"legend {id_.removeprefix('legend-')}"


def test_no_operator_is_drawn_if_none_may_enter(build: Callable[..., Cluster]) -> None:
    drawing = draw(build(REGION_ONLY))
    assert [group.id for group in drawing.groups if "operator" in group.id] == []
    assert "perator" not in drawing.about
    region = next(group for group in drawing.groups if group.id == "region")
    heading = next(group for group in drawing.groups if group.id == "legend")
    assert not meet(area(region.shapes[0]), area(heading.shapes[0]))


def test_operators_who_may_enter_the_region_are_drawn_above_it_with_their_ranges(
    build: Callable[..., Cluster],
) -> None:
    plane = AZURE | {"operators": ["10.250.0.0/24"]}
    drawn = groups(build(REGION_ONLY | {"control_plane": plane}))
    assert "10.250.0.0/24" in words(drawn["band-operator"])
    assert area(drawn["band-operator"].shapes[0])[3] < area(drawn["region"].shapes[0])[1]


def test_operators_who_may_enter_a_site_only_are_drawn_next_to_it(trained: Cluster) -> None:
    drawn = groups(trained)
    assert words(drawn["band-operator"]).startswith("Operators at sites")
    assert area(drawn["band-operator"].shapes[0])[1] > area(drawn["region"].shapes[0])[3]


@pytest.mark.parametrize("band", ["operator", "public-operator", "clients", "pods"])
def test_nobody_from_outside_is_drawn_inside_the_region(build: Callable[..., Cluster], band: str) -> None:
    plane = AZURE | {"operators": ["10.250.0.0/24"], "public": PUBLIC}
    drawn = groups(
        build(
            {"control_plane": plane, "network": {"nodes": "10.77.0.0/16", "node_ports": {"outside": ["192.0.2.0/24"]}}}
        )
    )
    assert not meet(area(drawn[f"band-{band}"].shapes[0]), area(drawn["region"].shapes[0]))


def test_a_site_shows_its_rails_with_the_number_of_their_ports(trained: Cluster) -> None:
    drawn = groups(trained)
    assert words(drawn["band-fabric-onprem"]).startswith(
        "RDMA fabric of onprem: 8 rails RoCE v2, lossless · 400 Gbit/s"
    )
    for number in range(8):
        rail = drawn[f"rail-onprem-rail-{number}"]
        assert words(rail) == f"rail-{number} 3 ports"
        assert f"0000:{number}a:00.0" in rail.about
    assert "8 RDMA rails" in words(drawn["pool-workers"])


def test_a_site_shows_the_hosts_and_the_daemons_of_its_ceph(trained: Cluster) -> None:
    drawn = groups(trained)
    parts = {id_.removeprefix("ceph-onprem-"): words(group) for id_, group in drawn.items() if id_.startswith("ceph-")}
    assert parts == {
        "hosts": "storage hosts 3 of pool workers",
        "osds-nvme": "OSDs on nvme 24, one for each disk 8 in each host 7TiB or more each",
        "monitors": "monitors 3, each on another host",
        "managers": "managers 2, one of them active",
        "metadata": "metadata servers 2, one of them active",
        "gateways": "object gateways 2",
    }
    assert "storage hosts" in words(drawn["pool-workers"])


def test_sites_without_rails_or_ceph_show_none(lab: Cluster) -> None:
    assert [id_ for id_ in groups(lab) if id_.startswith(("band-fabric", "band-ceph", "rail-", "ceph-"))] == []


def test_nothing_is_cut(drawn: Cluster) -> None:
    texts = [shape.text for shape in draw(drawn).shapes() if isinstance(shape, Text)]
    assert [text for text in texts if text.endswith("…")] == []


def test_every_box_is_inside_its_band(drawn: Cluster) -> None:
    drawing = draw(drawn)
    bands = [area(group.shapes[0]) for group in drawing.groups if group.id.startswith("band-")]
    cards = [s for g in drawing.groups for s in g.shapes if isinstance(s, Box) and s.kind.startswith("card")]
    inside = [card for card in cards if card.kind != "card outside"]
    for card in map(area, inside):
        assert any(b[0] <= card[0] and card[2] <= b[2] and b[1] <= card[1] and card[3] <= b[3] for b in bands)
