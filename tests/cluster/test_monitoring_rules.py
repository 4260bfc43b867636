"""Borders of the rules MON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from cluster.check import Checked, check, check_all
from cluster.metrics import sizes
from cluster.monitoring import Monitoring
from cluster.positions import nowhere
from cluster.spec import Cluster

Build = Callable[..., Cluster]
HOOK = "https://alerts.example.org/hook"


@pytest.fixture
def problems(build: Build) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """Return a function that checks the lab with these settings: code -> message of its problems MON."""

    def of(settings: Mapping[str, Any]) -> dict[str, str]:
        every = check(build({"monitoring": settings}))
        return {problem.code: problem.message for problem in every if problem.code.startswith("MON")}

    return of


def test_a_cluster_may_have_exactly_as_many_series_as_its_limit(build: Build, problems) -> None:
    series = sizes.total(sizes.sizes(build()))
    assert problems({"max_series": series}) == {}
    assert f"{series:,} series of metrics" in problems({"max_series": series - 1})["MON-001"]


def test_monitoring_that_is_off_has_no_size(problems) -> None:
    assert problems({"enabled": False, "max_series": 1, "memory": "1MiB", "disk": "1MiB", "retention": "1h"}) == {}


def test_memory_may_be_exactly_what_the_series_need(build: Build, problems) -> None:
    needed = sizes.memory(sizes.total(sizes.sizes(build())))
    assert problems({"memory": f"{needed}B"}) == {}
    assert set(problems({"memory": f"{needed - 1}B"})) == {"MON-004"}


def test_the_disk_may_be_exactly_what_the_retention_needs(build: Build, problems) -> None:
    needed = sizes.disk(sizes.sizes(build()), 2 * 86_400_000)
    assert problems({"retention": "2d", "disk": f"{needed}B"}) == {}
    assert set(problems({"retention": "2d", "disk": f"{needed - 1}B"})) == {"MON-002"}
    assert problems({"retention": "2h"}) == {}


def test_fewer_pods_and_namespaces_make_a_cluster_fit(build: Build, problems) -> None:
    small = {"expected_pods": 1, "expected_namespaces": 1}
    series = sizes.total(sizes.sizes(build({"monitoring": small})))
    assert "MON-001" in problems({"max_series": series})
    assert problems({**small, "max_series": series}) == {}


def test_two_receivers_may_share_a_host_but_no_url(problems) -> None:
    switch = {"dead_mans_switch": "https://switch.example.org/1"}
    assert problems({"receivers": {"a": {"url": HOOK}, "b": {"url": f"{HOOK}2"}}, **switch}) == {}
    assert set(problems({"receivers": {"a": {"url": HOOK}, "b": {"url": HOOK}}, **switch})) == {"MON-005"}


@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("https://alerts.example.org/hook", set()),
        ("http://10.1.2.3:9093/hook", set()),
        ("http://alerts.example.org/hook", {"MON-006"}),
        ("http://198.51.101.7/hook", {"MON-006"}),
    ],
)
def test_alerts_that_leave_your_own_networks_are_to_be_encrypted(problems, url: str, codes: set[str]) -> None:
    switch = {"dead_mans_switch": "https://switch.example.org/1"}
    assert set(problems({"receivers": {"oncall": {"url": url}}, **switch})) == codes


@pytest.mark.parametrize(
    "url", ["alerts.example.org", "ftp://a.example.org/", "https://", "https://a b/", f"{HOOK}?token=x"]
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="isn't the URL of a webhook"):
        Monitoring.model_validate({"receivers": {"oncall": {"url": url}}})


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValidationError) as refused:
        Monitoring.model_validate({"dead_mans_switch": "https://me:geheim@switch.example.org/"})
    assert refused.value.errors()[0]["type"] == "MON-005"
    assert "geheim" not in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize("name", ["", "1up", "up{}", "node_.*", "a-b", "a b"])
def test_only_names_of_metrics_can_be_kept(name: str) -> None:
    with pytest.raises(ValidationError, match="isn't the name of a metric"):
        Monitoring.model_validate({"keep": [name]})


def test_a_metric_that_the_catalogues_lack_is_an_error_that_can_be_accepted(build: Build) -> None:
    together = [Checked(build({"monitoring": {"keep": ["node_lod1"]}}), nowhere("lab"))]
    for allow_unknown, is_error in ((False, True), (True, False)):
        (problem,) = [each for each in check_all(together, allow_unknown=allow_unknown) if each.code == "MON-003"]
        assert problem.is_error is is_error
        assert "node_load1" in problem.hint
