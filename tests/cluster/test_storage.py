"""What follows from a spec's storage, without a stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.spec import ClusterSpec
from cluster.storage import block_disk, controllers_pool, has_block, has_file

EXAMPLES = Path(__file__).parents[2] / "examples"
CPU, GPU = {"machine": "c3-standard-8", "min": 1, "max": 4}, {"machine": "a3-highgpu-8g", "min": 1, "max": 4}
NEWER = {"machine": "c4-standard-8", "min": 1, "max": 4}

Spec = Callable[..., ClusterSpec]


@pytest.fixture
def spec() -> Spec:
    def made(**changes: Any) -> ClusterSpec:
        example = yaml.safe_load((EXAMPLES / "gcp-small" / "cluster.yaml").read_text())
        return ClusterSpec.model_validate({**example, **changes})

    return made


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({"gpu": GPU, "cpu": CPU, "other": CPU}, "cpu"),
        ({"gpu": GPU}, "gpu"),
        ({"spot": {**CPU, "spot": True}, "cpu": CPU}, "cpu"),
        ({"spot": {**CPU, "spot": True}, "gpu": GPU}, "spot"),
        ({"none": {**CPU, "min": 0}, "cpu": CPU}, "cpu"),
        ({"none": {**CPU, "min": 0}, "gpu": GPU}, "none"),
        ({"empty": {**CPU, "min": 0, "max": 0}, "gpu": GPU}, "gpu"),
        ({"empty": {**CPU, "min": 0, "max": 0}}, None),
        ({}, None),
    ],
)
def test_controllers_run_on_the_cheapest_pool_that_always_has_machines(
    spec: Spec, pools: Any, expected: str | None
) -> None:
    assert controllers_pool(spec(pools=pools)) == expected


def test_the_choice_in_the_spec_takes_precedence(spec: Spec) -> None:
    pools = {"gpu": GPU, "cpu": CPU}
    assert controllers_pool(spec(pools=pools, storage={"controllers": "gpu"})) == "gpu"


@pytest.mark.parametrize(("block", "file"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_pool_of_controllers_exists_exactly_if_a_class_does(spec: Spec, block: bool, file: bool) -> None:
    made = spec(storage={"block": block, "file": file})
    assert (has_block(made), has_file(made), bool(controllers_pool(made))) == (block, file, block or file)


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({"cpu": CPU}, "pd-balanced"),
        ({"cpu": NEWER}, "hyperdisk-balanced"),
        ({"cpu": CPU, "newer": NEWER}, "hyperdisk-balanced"),
        ({}, "pd-balanced"),
    ],
)
def test_the_default_disk_is_one_that_the_machines_support(spec: Spec, pools: Any, expected: str) -> None:
    assert block_disk(spec(pools=pools)) == expected
    assert block_disk(spec(pools=pools, storage={"block_disk": "pd-ssd"})) == "pd-ssd"
