"""The tables of `tests.levels` name what is there."""

from __future__ import annotations

from tests.levels import BESIDE, TESTS, UNDER_THE_ENGINE, WITH_PROGRAMS


def test_every_line_of_the_tables_is_a_file_or_folder_of_tests() -> None:
    assert [place for place in (*UNDER_THE_ENGINE, *WITH_PROGRAMS) if not (TESTS / place).exists()] == []


def test_what_runs_beside_the_lab_is_a_group_or_a_line_of_the_tables() -> None:
    assert {*UNDER_THE_ENGINE.values(), *WITH_PROGRAMS} >= BESIDE
