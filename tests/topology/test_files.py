from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cluster.artefacts import ArtefactSource
from cluster.load import load_cluster
from components.drawing.html import html
from components.drawing.layout import draw
from components.drawing.shapes import ADVANCE, Text
from components.drawing.style import SVG_STYLE
from components.drawing.svg import svg
from components.flows.table import flows
from network.vpn import tunnels
from sandbox.lab.plan import MIRROR_URL, REGISTRY

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "topology"
SVG = "{http://www.w3.org/2000/svg}"
LAB = ArtefactSource(MIRROR_URL, {}, REGISTRY)


def golden(name: str, actual: str) -> str:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the difference."""
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_text(actual)
    return (GOLDEN / name).read_text()


class Page(HTMLParser):
    """A parsed page: elements with their attributes, in order, and those left open."""

    _VOID = ("meta", "rect", "path", "circle", "br")

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("folder", ["inventories/lab", "examples/horus"])
def test_the_drawing_of_a_cluster_matches_its_golden_file(folder):
    cluster = load_cluster(ROOT / folder / "cluster.yaml")
    drawing = svg(draw(cluster, LAB)) if cluster.is_lab else svg(draw(cluster))
    assert drawing == golden(f"{cluster.name}.svg", drawing)


def test_the_drawing_of_a_cluster_for_training_matches_its_golden_file(trained):
    drawing = svg(draw(trained))
    assert drawing == golden("trained.svg", drawing)


def test_the_page_of_the_lab_matches_its_golden_file(lab):
    page = html(lab, LAB)
    assert page == golden("lab.html", page)


def test_equal_specs_give_equal_files(drawn):
    assert svg(draw(drawn)) == svg(draw(drawn.model_copy(deep=True)))


def test_a_drawing_is_self_contained_runs_nothing_and_describes_every_part(drawn):
    text = svg(draw(drawn))
    root = ET.fromstring(text)
    assert not re.search(r"<script|javascript:|@import|url\((?!#)|\son\w+=|href=", text)
    assert text.count("http") == text.count("http://www.w3.org/2000/svg") == 1
    title, about = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert f"{title.get('id')} {about.get('id')}" == root.get("aria-labelledby")
    assert title.text and about.text
    groups = root.findall(f"{SVG}g")
    assert groups and all(group[0].tag == f"{SVG}title" and group[0].text for group in groups)


def test_names_from_a_spec_are_escaped(lab):
    drawing = draw(lab)
    evil = '<script>alert("&")</script>'
    first = drawing.groups[0]
    changed = first.__class__(first.id, first.kind, evil, (Text(1, 1, evil, "fact"),))
    text = svg(drawing.__class__(10, 10, evil, evil, (changed,)))
    assert "<script" not in text
    assert ET.fromstring(text).find(f"{SVG}g/{SVG}text").text == evil


def test_a_page_is_self_contained_and_every_link_has_a_target(drawn):
    text = html(drawn)
    page = Page(text)
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for tag, attributes in page.elements if tag == "a"}
    assert links and links <= {f"#{id_}" for id_ in ids}
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "@import" not in text


def test_a_page_has_every_host_flow_and_tunnel(hybrid, lab):
    for cluster in (hybrid, lab):
        words = Page(html(cluster)).text
        for _, host in cluster.host_list():
            assert {host.name, str(host.address)} <= set(words)
        assert {flow.why for flow in flows(cluster)} <= set(words)
        for tunnel in tunnels(cluster):
            assert {str(tunnel.peer), str(tunnel.edge.address), str(tunnel.cloud.address)} <= set(words)


def test_pointing_at_a_row_highlights_its_arrow(lab):
    page = Page(html(lab))
    marked = {name for tag, attributes in page.elements if tag == "tr" for name in attributes.get("class", "").split()}
    lines = {a["id"] for tag, a in page.elements if tag == "g" and a["class"].startswith("flow")}
    assert marked == {f"row-{line}" for line in lines}
    assert all(f"body:has(.row-{line}:hover) #{line} .line" in "".join(page.text) for line in lines)


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_is_readable_on_light_and_dark_screens():
    light, dark = SVG_STYLE.split("@media (prefers-color-scheme:dark)")
    for theme in (light, dark):
        inks = re.findall(r"(?:^|\n)(?:text|\.fact[^{]*)\{fill:(#\w{6})", theme)
        papers = re.findall(r"(?:\.paper|rect\.zone|\.card\.\w+)\{[^}]*fill:(#\w{6})", theme)
        assert (len(inks), len(papers)) == (2, 8)
        for ink in inks:
            for paper in papers:
                high, low = sorted((luminance(ink), luminance(paper)), reverse=True)
                assert (high + 0.05) / (low + 0.05) > 4.5, (ink, paper)


def test_the_assumed_width_of_characters_covers_every_font_of_a_drawing():
    """Advances in units per em, from the fonts' hmtx tables. Browsers take `monospace` from the system: usually one of these."""
    advances = {
        "DejaVu Sans Mono": 1233 / 2048,
        "Menlo": 1233 / 2048,
        "Consolas": 1126 / 2048,
        "Liberation Mono": 1229 / 2048,
    }
    (families,) = re.findall(r"font-family:([^;]*)", SVG_STYLE)
    *fonts, last = (family.strip('"') for family in families.split(","))
    assert (set(fonts), last) == (set(advances), "monospace")
    assert max(advances.values()) <= ADVANCE


def test_a_page_fits_a_narrow_screen(drawn):
    """There, cells of tables with a head are lines of a list, each with the name of its column. Other tables scroll."""
    page = html(drawn)
    tables = page.split("<table")[1:]
    assert len(tables) == page.count('<div class="scroll">\n<table')
    for table in (table for table in tables if "<thead>" in table):
        assert table.startswith(' class="rows">')
        assert table.count("<td") == table.count("<td data-column=")


def test_the_style_of_the_drawing_leaves_the_tables_of_its_page_alone(lab):
    tables = re.sub(r"<svg.*?</svg>", "", html(lab, LAB), flags=re.DOTALL)
    used = {name for names in re.findall(r'class="([^"]*)"', tables) for name in names.split()}
    assert "rows" in used
    assert used.isdisjoint(re.findall(r"\.([a-z][\w-]*)", SVG_STYLE))


def test_a_page_has_every_pool_with_its_gpus(trained):
    words = Page(html(trained)).text
    assert {"pool gpu", "pool workers", "p5.48xlarge", "dgx-h100", "8 × NVIDIA H100 80GB HBM3", "64", "24"} <= set(
        words
    )


def test_the_drawing_in_the_documentation_matches_its_spec():
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the difference."""
    spec = ROOT / "examples" / "aws-small" / "cluster.yaml"
    expected, drawing = svg(draw(load_cluster(spec))), spec.with_suffix(".svg")
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        drawing.write_text(expected)
    assert drawing.read_text() == expected, "run `make golden`"
