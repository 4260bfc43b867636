from __future__ import annotations

import pytest

from tests.bench.figures import Figure, number, ratios, table


def test_a_ratio_compares_the_two_bring_ups_of_one_round_not_the_medians() -> None:
    assert ratios([10.0, 30.0], [10.0, 20.0]) == (1.0, 1.5)


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0, 2.0]), ([1.0], [0.0]), ([1.0], [-1.0])])
def test_durations_that_do_not_pair_up_have_no_ratio(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="not pairs"):
        ratios(ours, theirs)


@pytest.mark.parametrize(("values", "met"), [((1.0, 1.3, 1.6), True), ((1.0, 1.31, 1.4), False)])
def test_an_aim_is_met_if_the_median_is_at_most_the_aim(values: tuple[float, ...], met: bool) -> None:
    assert Figure("ratio", "", values, aim=1.3).met is met


def test_a_figure_without_an_aim_is_neither_met_nor_missed() -> None:
    figure = Figure("seconds", "s", (3.0,))
    assert figure.met is None
    assert figure.to_json()["met"] is None


def test_a_figure_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Figure("seconds", "s", ())


@pytest.mark.parametrize(("value", "text"), [(0.1234, "0.12"), (12.34, "12.3"), (123.4, "123"), (0.0, "0.00")])
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_shows_each_value_and_a_missed_aim() -> None:
    lines = table([Figure("up", "s", (36.0, 40.0), aim=150.0), Figure("ratio", "", (2.0,), aim=1.3)]).splitlines()
    assert lines[2].split() == ["up", "38.0", "s", "36.0", "40.0", "<=", "150", "s", "met"]
    assert lines[3].split() == ["ratio", "2.00", "<=", "1.30", "MISSED"]
