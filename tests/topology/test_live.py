"""The state of a running cluster on its drawing: colours, marks and words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from components.drawing.layout import draw
from components.drawing.live import MARKS, MEANINGS, Health, Live, coloured, together
from components.drawing.shapes import Badge
from components.drawing.style import LIVE_STYLE, SVG_STYLE
from components.drawing.svg import svg

HEALTHY, PARTLY, DOWN, OUT, UNKNOWN = Health


@pytest.mark.parametrize(
    ("healths", "whole"),
    [
        ((), UNKNOWN),
        ((HEALTHY, HEALTHY), HEALTHY),
        ((HEALTHY, DOWN), PARTLY),
        ((HEALTHY, PARTLY), PARTLY),
        ((PARTLY, PARTLY), PARTLY),
        ((DOWN, DOWN), DOWN),
        ((DOWN, OUT), DOWN),
        ((OUT, OUT), OUT),
        ((HEALTHY, OUT), HEALTHY),
        ((HEALTHY, UNKNOWN), UNKNOWN),
    ],
)
def test_the_health_of_several_things_together(healths, whole):
    assert together(healths) is whole


def test_a_state_gives_its_part_a_class_a_badge_and_words_and_changes_nothing_else(lab):
    drawing = draw(lab)
    live = coloured(drawing, {"band-etcd-main": Live("etcd main", DOWN, "no quorum"), "absent": Live("x", DOWN)})
    (changed,) = [group for group in live.groups if group not in drawing.groups]
    before = next(group for group in drawing.groups if group.id == "band-etcd-main")
    assert changed.kind == "part live-down"
    assert changed.about == f"down: no quorum. {before.about}"
    assert next(shape for shape in changed.shapes if isinstance(shape, Badge)).mark == MARKS[DOWN]
    assert replace(changed, kind=before.kind, about=before.about, shapes=changed.shapes[:-1]) == before


def test_what_is_healthy_has_no_badge_and_every_other_health_has_its_own(lab):
    live = coloured(draw(lab), {"band-etcd-main": Live("etcd main", HEALTHY)})
    assert not [shape for shape in live.shapes() if isinstance(shape, Badge)]
    marks = [mark for health, mark in MARKS.items() if health is not HEALTHY]
    assert len(set(marks)) == len(marks) == 4
    assert len(set(MEANINGS.values())) == 5


def test_a_drawing_for_a_page_has_no_style_of_its_own(lab):
    assert "<style>" not in svg(draw(lab), styled=False)
    assert "<style>" in svg(draw(lab))


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours (WCAG 2.2, "contrast ratio")."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(factor * part for factor, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    lighter, darker = sorted((light(first), light(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("health", list(Health))
def test_text_on_the_colours_of_states_and_words_in_them_have_enough_contrast(dark, health):
    style, plain = (text.split("@media")[dark] for text in (LIVE_STYLE, SVG_STYLE))
    ink, dim, paper = (
        re.search(pattern, plain)[1]
        for pattern in (r"text{fill:(#\w+)}", r"\.fact,\.note,\.zone{fill:(#\w+)}", r"\.paper{fill:(#\w+)}")
    )
    fill = re.search(rf"\.key-{health}{{fill:(#\w+)", style)[1]
    word = re.search(rf"\.word-{health}{{color:(#\w+)", style)[1]
    assert min(contrast(ink, fill), contrast(dim, fill), contrast(word, paper)) >= 4.5
