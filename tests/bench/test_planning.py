from __future__ import annotations

import pytest

from tests.bench.planning import AIM_MS, CASES, CLOUDS, FEW, MANY, TERRAFORM, Case, a_resource_ms, name, summary


def test_the_cost_of_starting_is_not_part_of_a_resources_cost() -> None:
    starting, each = 1.5, 0.007
    assert a_resource_ms(starting + FEW * each, starting + MANY * each) == pytest.approx(7.0)


def test_every_cloud_is_planned_both_ways_and_terraform_once() -> None:
    assert sorted(map(name, CASES)) == sorted(
        [*(f"{cloud}, {how}" for cloud in CLOUDS for how in ("plain", "lean")), "terraform plan"]
    )


def test_ratios_compare_the_plans_of_one_round() -> None:
    costs = {case: [1.0, 1.0] for case in CASES}
    costs |= {Case("azure"): [40.0, 80.0], Case("azure", leanly=True): [4.0, 4.0], Case(TERRAFORM): [1.0, 2.0]}
    figures = {figure.name.partition(", ")[2]: figure.values for figure in summary(costs)}
    assert figures["azure, lean ÷ plain"] == (0.1, 0.05)
    assert figures["azure, lean ÷ terraform"] == (4.0, 2.0)


def test_only_the_toolkit_has_an_aim() -> None:
    aimed = {figure.name: figure.aim for figure in summary({case: [1.0] for case in CASES}) if figure.aim}
    assert aimed == {f"CPU a planned resource, {cloud}, lean": AIM_MS for cloud in CLOUDS}
