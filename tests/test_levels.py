"""The tables of `tests.levels` name what is there."""

from __future__ import annotations

from tests.levels import TESTS, TIMED, UNDER_THE_ENGINE, WITH_PROGRAMS, timed_places


def test_every_line_of_the_tables_is_a_file_or_folder_of_tests() -> None:
    assert [place for place in (*UNDER_THE_ENGINE, *WITH_PROGRAMS) if not (TESTS / place).exists()] == []


def test_what_runs_before_the_lab_is_a_group_or_a_line_of_the_tables() -> None:
    assert {*UNDER_THE_ENGINE.values(), *WITH_PROGRAMS} >= TIMED


def test_places_of_what_is_timed_are_files_of_its_groups_its_lines_and_files_that_say_so() -> None:
    places = set(timed_places())
    assert {"operations/keys/test_rotation.py", "operations/record", "vpn/test_packets.py"} <= places
    assert [place for place in places if not (TESTS / place).exists()] == []
    assert {"keys", "tenancy/test_real_api.py", "test_levels.py"} & places == set()
