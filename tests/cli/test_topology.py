from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import EXAMPLES


def test_a_drawing_goes_to_standard_output_and_nothing_else_does(menagerie):
    told = menagerie("show", "topology", str(EXAMPLES / "jaguar"))
    assert told.code == 0
    assert ET.fromstring(told.out).tag.endswith("svg")


@pytest.mark.parametrize(("name", "begins"), [("a.svg", "<svg "), ("a.html", "<!DOCTYPE html>")])
def test_the_ending_of_the_file_says_what_is_written(menagerie, tmp_path, name, begins):
    told = menagerie("show", "topology", "lab", "--output", str(tmp_path / name))
    assert (told.code, told.out) == (0, "")
    text = (tmp_path / name).read_text()
    assert text.startswith(begins)
    assert "http://10.79.1.10" in text, "the lab's hosts download from the lab"


@pytest.mark.parametrize(("file", "why"), [("a.png", "neither in .svg nor"), ("none/a.svg", "there is no folder")])
def test_what_can_not_be_written_is_refused(menagerie, tmp_path, file, why):
    told = menagerie("show", "topology", "lab", "--output", str(tmp_path / file))
    assert (told.code, told.out) == (2, "")
    assert why in told.err
    assert not list(tmp_path.rglob("*.svg"))
