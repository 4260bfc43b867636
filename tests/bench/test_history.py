from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.bench.history import Kind, Operation, summary, violations


def write(value: int, began: float, ended: float, refused: str = "") -> Operation:
    return Operation(Kind.WRITE, "a", value, began, ended, refused)


def read(value: int, began: float, ended: float, refused: str = "") -> Operation:
    return Operation(Kind.READ, "a", value, began, ended, refused)


def test_a_write_that_was_acknowledged_and_is_gone_is_found() -> None:
    assert violations([write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]) == [
        "a: 1 was read after 2 had been acknowledged"
    ]


def test_a_read_may_not_go_back_behind_another_one() -> None:
    history = [write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(1, 5, 6)]
    assert violations(history) == ["a: 1 was read after 2 had been read"]


def test_what_nobody_wrote_may_not_be_read() -> None:
    assert violations([write(1, 0, 1), read(3, 2, 3)]) == ["a: 3 was read, and nobody had written it"]
    assert violations([write(1, 0, 1), read(2, 2, 3), write(2, 4, 5)]) == [
        "a: 2 was read, and nobody had written it",
    ]


def test_a_write_without_an_answer_may_have_happened_or_not() -> None:
    unknown = write(2, 2, 3, refused="ReadTimeoutError")
    assert violations([write(1, 0, 1), unknown, read(1, 4, 5)]) == []
    assert violations([write(1, 0, 1), unknown, read(2, 4, 5)]) == []


def test_reads_beside_a_write_may_see_either_value() -> None:
    assert violations([write(1, 0, 1), write(2, 2, 5), read(1, 3, 6)]) == []
    assert violations([write(1, 0, 1), write(2, 2, 5), read(2, 3, 4)]) == []


def test_keys_do_not_count_against_each_other() -> None:
    other = Operation(Kind.READ, "b", 0, 4, 5)
    assert violations([write(1, 0, 1), other]) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 5), st.booleans()), min_size=1, max_size=40))
def test_a_register_that_does_what_it_is_asked_has_a_history_without_fault(
    steps: list[tuple[bool, float, bool]],
) -> None:
    """One client after the other: each sees what the one before did, whether that was told or not."""
    now, held, history = 0.0, 0, []
    for writes, seconds, told in steps:
        held += writes
        kind = Kind.WRITE if writes else Kind.READ
        history.append(Operation(kind, "a", held, now, now + seconds, "" if told else "no answer"))
        now += seconds
    assert violations(history) == []


def test_the_longest_time_without_a_write_also_counts_at_both_ends() -> None:
    history = [write(1, 0, 1), read(1, 1, 2), write(2, 2, 4, refused="timeout"), read(1, 4, 12)]
    told = summary(history)
    assert (told.writes, told.writes_refused, told.reads, told.longest_gap_s) == (1, 1, 2, 11)
