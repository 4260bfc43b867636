from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.bench.history import Kind, Operation, summary, violations


def write(value: int, began: float, ended: float, refused: str = "") -> Operation:
    return Operation(Kind.WRITE, "a", value, began, ended, refused)


def read(value: int, began: float, ended: float, refused: str = "") -> Operation:
    return Operation(Kind.READ, "a", value, began, ended, refused)


def test_a_lost_acknowledged_write_is_found() -> None:
    assert violations([write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]) == [
        "a: 1 was read after 2 had been acknowledged"
    ]


def test_a_read_must_not_be_older_than_an_earlier_read() -> None:
    history = [write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(1, 5, 6)]
    assert violations(history) == ["a: 1 was read after 2 had been read"]


def test_a_value_that_was_never_written_must_not_be_read() -> None:
    assert violations([write(1, 0, 1), read(3, 2, 3)]) == ["a: 3 was read, and was never written"]
    assert violations([write(1, 0, 1), read(2, 2, 3), write(2, 4, 5)]) == [
        "a: 2 was read, and was never written",
    ]


def test_an_unanswered_write_may_or_may_not_have_happened() -> None:
    unknown = write(2, 2, 3, refused="ReadTimeoutError")
    assert violations([write(1, 0, 1), unknown, read(1, 4, 5)]) == []
    assert violations([write(1, 0, 1), unknown, read(2, 4, 5)]) == []


def test_reads_concurrent_with_a_write_may_see_either_value() -> None:
    assert violations([write(1, 0, 1), write(2, 2, 5), read(1, 3, 6)]) == []
    assert violations([write(1, 0, 1), write(2, 2, 5), read(2, 3, 4)]) == []


def test_keys_do_not_count_against_each_other() -> None:
    other = Operation(Kind.READ, "b", 0, 4, 5)
    assert violations([write(1, 0, 1), other]) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 5), st.booleans()), min_size=1, max_size=40))
def test_a_correct_register_has_no_violations(
    steps: list[tuple[bool, float, bool]],
) -> None:
    """Clients run one after the other. Each sees what the previous one did, acknowledged or not."""
    now, held, history = 0.0, 0, []
    for writes, seconds, is_answered in steps:
        held += writes
        kind = Kind.WRITE if writes else Kind.READ
        history.append(Operation(kind, "a", held, now, now + seconds, "" if is_answered else "no answer"))
        now += seconds
    assert violations(history) == []


def test_the_longest_gap_without_a_write_includes_both_ends() -> None:
    history = [write(1, 0, 1), read(1, 1, 2), write(2, 2, 4, refused="timeout"), read(1, 4, 12)]
    results = summary(history)
    assert (results.writes, results.writes_refused, results.reads, results.longest_gap_s) == (1, 1, 2, 11)
