"""The tables of `tests.levels` name existing files, folders and groups."""

from __future__ import annotations

from tests.levels import TESTS, TIMED, UNDER_THE_ENGINE, WITH_PROGRAMS, timed_places


def test_every_line_of_the_tables_is_a_file_or_folder_of_tests() -> None:
    assert [place for place in (*UNDER_THE_ENGINE, *WITH_PROGRAMS) if not (TESTS / place).exists()] == []


def test_everything_that_runs_before_the_lab_is_a_group_or_a_line_of_the_tables() -> None:
    assert {*UNDER_THE_ENGINE.values(), *WITH_PROGRAMS} >= TIMED


def test_timed_places_are_files_of_timed_groups_timed_lines_and_self_marked_files() -> None:
    places = set(timed_places())
    assert {"operations/keys/test_rotation.py", "operations/record", "vpn/test_packets.py"} <= places
    assert [place for place in places if not (TESTS / place).exists()] == []
    assert {"keys", "tenancy/test_real_api.py", "test_levels.py"} & places == set()
