from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.drawing.layout import draw
from components.drawing.shapes import Box, Line, Text, fit, width_of, wrap
from components.drawing.traffic import traffic
from components.flows.flow import Role
from components.flows.table import flows
from network import addresses
from network.vpn import tunnels
from tests.flows.support import SHAPES
from tests.topology.support import area, overlaps, within


def texts(drawing):
    return {shape.text for shape in drawing.shapes() if isinstance(shape, Text)}


def test_no_text_or_line_overlaps_text(drawn):
    assert overlaps(draw(drawn)) == []


@settings(max_examples=25, deadline=None)
@given(SHAPES)
def test_nothing_overlaps_in_clusters_of_any_shape(build, changes):
    assert overlaps(draw(build(changes))) == []


def test_text_stays_in_its_box_and_everything_on_the_page(drawn):
    drawing = draw(drawn)
    for group in drawing.groups:
        boxes = [shape for shape in group.shapes if isinstance(shape, Box)]
        for shape in group.shapes:
            if isinstance(shape, Text) and boxes:
                assert within(area(shape), area(boxes[0])), shape.text
            if isinstance(shape, Box | Line | Text):
                assert within(area(shape), (0, 0, drawing.width, drawing.height)), group.id


def test_cards_do_not_overlap(drawn):
    cards = [shape for shape in draw(drawn).shapes() if isinstance(shape, Box) and shape.kind.startswith("card")]
    spots = sorted(map(area, cards))
    for n, spot in enumerate(spots):
        for other in spots[n + 1 :]:
            if other[0] >= spot[2]:
                break
            assert other[1] >= spot[3] or spot[1] >= other[3]


def test_ids_are_unique(drawn):
    ids = [group.id for group in draw(drawn).groups]
    assert len(ids) == len(set(ids))


def test_hosts_are_shown_with_fixed_addresses_and_arrows_with_ports(drawn):
    shown = texts(draw(drawn))
    for host in addresses.plan(drawn).hosts():
        assert {host.name, str(host.address)} <= shown
    for arrow in traffic(flows(drawn)).all():
        assert any(text.rstrip("…") and arrow.ports.startswith(text.rstrip("…")) for text in shown), arrow.ports


def test_an_arrow_starts_at_all_its_sources_and_has_heads_at_its_destination(build):
    drawing = draw(build({"pools": {"cpu": {"machine": "m", "max": 3}}}))
    (logins,) = (g for g in drawing.groups if g.kind.startswith("flow") and g.about.startswith("operator → worker at"))
    stretches = [shape for shape in logins.shapes if isinstance(shape, Line)]
    assert [line.arrow for line in stretches].count(True) == 1
    (kubelets,) = (g for g in drawing.groups if "→ load balancer, tcp 8132" in g.about and g.id.startswith("flow"))
    level = [shape for shape in kubelets.shapes if isinstance(shape, Line)][1:]
    assert (len(level), sum(line.arrow for line in level)) == (3, 1)


@settings(max_examples=25, deadline=None)
@given(SHAPES)
def test_every_flow_between_two_roles_is_on_one_line(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    lines = {group.id: group for group in draw(cluster).groups}
    for flow in table:
        line = traffic(table).line_of(flow)
        assert (line is None) == (flow.source is flow.destination)
        if line:
            assert flow.why in lines[line].about


def test_lines_that_share_a_lane_do_not_touch(drawn):
    by_lane = {}
    for group in draw(drawn).groups:
        if group.kind.startswith("flow"):
            (x, top), (_, bottom) = group.shapes[0].points
            by_lane.setdefault(x, []).append((top, bottom))
    for extents in by_lane.values():
        ordered = sorted(extents)
        assert all(upper[1] < lower[0] for upper, lower in pairwise(ordered))


def test_a_tunnel_joins_gateway_and_router_and_shows_its_addresses(hybrid):
    groups = {group.id: group for group in draw(hybrid).groups}
    planned = tunnels(hybrid)
    assert len(planned) == 14
    for tunnel in planned:
        group = groups[f"tunnel-{tunnel.site}-{tunnel.router}-{tunnel.gateway_end}"]
        assert str(tunnel.cloud.address) in group.about
        (line,) = group.shapes
        gateway, edge = (area(groups[f"band-{name}"].shapes[0]) for name in ("gateway", "edge"))
        assert (line.points[0][1], line.points[1][1]) == (gateway[3], edge[1])


def test_many_racks_are_cells_and_very_many_share_cells(hybrid):
    cells = [group for group in draw(hybrid).groups if group.id.startswith("rack-second-")]
    assert len(cells) <= 96
    assert "row-0–row-2" in texts(draw(hybrid))
    assert "10.90.199.0/24" in cells[-1].about


def test_a_site_without_machines_takes_no_arrow(hybrid):
    groups = {group.id: group for group in draw(hybrid).groups}
    words = [shape.text for shape in groups["band-site-idle"].shapes if isinstance(shape, Text)]
    assert not [word for word in words if word.startswith("to ") or "tcp" in word or "udp" in word]


def test_an_events_etcd_on_mains_hosts_is_shown_there(hybrid):
    shown = texts(draw(hybrid))
    assert "also etcd-events-3 :2381" in shown
    assert not [text for text in shown if text.startswith("etcd events:")]


def test_the_description_of_a_drawing_has_every_arrow(drawn):
    drawing = draw(drawn)
    for arrow in traffic(flows(drawn)).all():
        assert f"{arrow.destination} accepts {arrow.ports} from {', '.join(arrow.sources)}." in drawing.about


def test_flows_among_hosts_of_a_role_are_shown_in_their_band(lab):
    assert any("among themselves tcp 2379, 2380" in text for text in texts(draw(lab)))
    assert traffic(flows(lab)).left(Role.ETCD_MAIN)[0].label == "tcp 2379"


@pytest.mark.parametrize(
    ("text", "room", "fitted"), [("abcdef", 100, "abcdef"), ("abcdefghijkl", 54, "abcdefg…"), ("abc", 1, "…")]
)
def test_text_that_does_not_fit_ends_in_an_ellipsis(text, room, fitted):
    assert fit(text, "fact", room) == fitted


def test_text_wraps_between_words_and_a_longer_word_continues_on_the_next_line():
    assert wrap("one two three-and-more", "fact", 54) == ("one two", "three-an", "d-more")
    assert wrap("", "fact", 54) == ("",)


@given(st.text("ab -/", max_size=60), st.integers(20, 200))
def test_no_line_is_wider_than_its_room_and_nothing_is_lost(text, room):
    lines = wrap(text, "fact", room)
    assert all(width_of(line, "fact") <= room for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
