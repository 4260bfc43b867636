from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.prometheus import between, histograms, quantile, samples, total
from tests.bench.readings import LATENCY, slope, verb

TEXT = """\
# HELP apiserver_request_total Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="pods",verb="GET"} 12
apiserver_request_total{code="429",resource="pods",verb="LIST"} 3
apiserver_request_total{code="429",resource="a \\"quoted\\" one, with a comma",verb="LIST"} 4e+00
apiserver_request_total_of_another_kind{code="429"} 1000
process_resident_memory_bytes 1.5e+09
"""


def latencies(counts: dict[str, int], verb_: str = "GET", scope: str = "resource", subresource: str = "") -> str:
    labels = f'resource="pods",scope="{scope}",subresource="{subresource}",verb="{verb_}"'
    return "".join(f'{LATENCY}_bucket{{{labels},le="{bound}"}} {count}\n' for bound, count in counts.items())


def test_samples_have_labels_and_exclude_metrics_with_the_same_prefix() -> None:
    assert total(TEXT, "apiserver_request_total", code="429") == 7
    assert total(TEXT, "apiserver_request_total") == 19
    assert list(samples(TEXT, "process_resident_memory_bytes")) == [({}, 1.5e9)]
    assert [labels["resource"] for labels, _ in samples(TEXT, "apiserver_request_total")][2] == (
        'a "quoted" one, with a comma'
    )


def test_a_counter_without_samples_is_zero() -> None:
    assert total(TEXT, "apiserver_flowcontrol_rejected_requests_total") == 0


def test_histograms_with_equal_keys_are_summed_and_those_without_a_key_left_out() -> None:
    text = (
        latencies({"0.1": 1, "+Inf": 2})
        + latencies({"0.1": 3, "+Inf": 3}, subresource="status")
        + latencies({"0.1": 100, "+Inf": 100}, subresource="log")
        + latencies({"0.1": 100, "+Inf": 100}, "WATCH")
        + latencies({"0.1": 5, "+Inf": 5}, "LIST", "cluster")
    )
    assert histograms(text, LATENCY, verb) == {"GET": {0.1: 4, math.inf: 5}}


def test_only_observations_after_the_first_reading_count() -> None:
    before = histograms(latencies({"0.1": 100, "1": 100, "+Inf": 100}), LATENCY, verb)
    after = histograms(
        latencies({"0.1": 100, "1": 200, "+Inf": 200}) + latencies({"0.1": 0, "+Inf": 0}, "PUT"), LATENCY, verb
    )
    more = between(before, after)
    assert more == {"GET": {0.1: 0, 1.0: 100, math.inf: 100}}
    assert quantile(more["GET"], 0.99) == pytest.approx(0.1 + 0.9 * 0.99)


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert quantile({0.5: 10, 60.0: 20, math.inf: 100}, 0.99) == 60.0


def test_a_histogram_without_observations_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="without observations"):
        quantile({0.5: 0, math.inf: 0}, 0.99)


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4).filter(any), st.floats(0.01, 1.0))
def test_a_quantile_is_in_the_bucket_that_contains_it(counts: list[int], share: float) -> None:
    bounds = [0.1, 1.0, 10.0, math.inf]
    reached = list(accumulate(counts))
    value = quantile(dict(zip(bounds, reached, strict=True)), share)
    place = next(index for index, count in enumerate(reached) if count >= share * reached[-1])
    lower = bounds[place - 1] if place else 0.0
    assert lower <= value <= min(bounds[place], max(lower, 10.0)) + 1e-9


def test_a_slope_is_recovered_for_any_intercept() -> None:
    assert slope({1000: 500 + 0.2 * 1000, 2500: 500 + 0.2 * 2500, 7500: 500 + 0.2 * 7500}) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="two points"):
        slope({500: 1.0})
