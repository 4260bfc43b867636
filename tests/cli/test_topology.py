from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import EXAMPLES


def test_only_the_drawing_goes_to_standard_output(menagerie):
    ran = menagerie("show", "topology", str(EXAMPLES / "jaguar"))
    assert ran.code == 0
    assert ET.fromstring(ran.out).tag.endswith("svg")


@pytest.mark.parametrize(("name", "begins"), [("a.svg", "<svg "), ("a.html", "<!DOCTYPE html>")])
def test_the_suffix_of_the_file_selects_the_format(menagerie, tmp_path, name, begins):
    ran = menagerie("show", "topology", "lab", "--output", str(tmp_path / name))
    assert (ran.code, ran.out) == (0, "")
    text = (tmp_path / name).read_text()
    assert text.startswith(begins)
    assert "http://10.79.1.10" in text, "the lab's hosts download from the lab"


@pytest.mark.parametrize(
    ("file", "why"), [("a.png", "must end in .svg or .html"), ("none/a.svg", "there is no folder")]
)
def test_an_unusable_output_is_refused(menagerie, tmp_path, file, why):
    ran = menagerie("show", "topology", "lab", "--output", str(tmp_path / file))
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert not list(tmp_path.rglob("*.svg"))
