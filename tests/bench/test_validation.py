from __future__ import annotations

import pytest

from tests.bench.validation import made, summary

STAGES = [{"stage": "preview", "resources": None}, {"stage": "up", "resources": 61}]
SMALL = {"clusters": [{"cluster": "gibbon", "stages": STAGES}]}


def test_a_clusters_resources_are_those_of_the_stage_that_created_them() -> None:
    assert made(SMALL["clusters"][0]) == 61
    with pytest.raises(StopIteration):
        made({"stages": STAGES[:1]})


def test_memory_is_the_sum_of_all_processes_at_their_common_peak() -> None:
    peaks = {None: {"pulumi": 300_000_000, "python3 worker": 250_000_000}, 1: {"pulumi": 200_000_000}}
    figures = {figure.name: figure for figure in summary(50.0, peaks, SMALL)}
    several, one = (figures[f"validate, peak memory, {how}"] for how in ("one a core", "1 at a time"))
    assert (several.values, several.met) == ((550.0,), False)
    assert (one.values, one.met) == ((200.0,), True)


def test_a_small_cluster_with_too_many_resources_misses_the_aim() -> None:
    figures = {figure.name: figure.met for figure in summary(50.0, {}, SMALL)}
    assert figures == {"validate, every example": True, "resources of gibbon": False}
