"""The pool that runs pods with powerful tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.controllers import home
from cluster.spec import Cluster

SMALL = {"machine": "m6i.large", "min": 2, "max": 4}
GPU = {"machine": "p5.48xlarge", "min": 2, "max": 4, "allow_no_driver": True}
AWS = {"cloud": "aws", "region": "us-east-1", "zones": ["us-east-1a"], "machine": "m6i.large"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "the only pool": ({"gpu": GPU}, {}, "gpu"),
    "a pool without GPUs": ({"gpu": GPU, "cpu": SMALL}, {}, "cpu"),
    "a pool that is not spot": ({"cheap": {**SMALL, "spot": True}, "cpu": SMALL}, {}, "cpu"),
    "a pool with two hosts": ({"one": {**SMALL, "min": 1, "max": 1}, "two": SMALL}, {}, "two"),
    "GPUs are better than a single host": ({"gpu": GPU, "one": {**SMALL, "min": 1, "max": 1}}, {}, "gpu"),
    "the pool for volumes": ({"cpu": SMALL, "system": SMALL}, {"storage": {"controllers": "system"}}, "system"),
    "the pool in the spec": ({"cpu": SMALL, "system": GPU}, {"tenancy": {"controllers": "system"}}, "system"),
    "none if no pool can have a host": ({"cpu": {**SMALL, "min": 0, "max": 0}}, {}, None),
}


@pytest.mark.parametrize("what", CASES)
def test_pool_of_controllers(build: Callable[..., Cluster], what: str) -> None:
    pools, more, expected = CASES[what]
    if "tenancy" in more:
        more = {"tenancy": {"directory": {"file": "people.yaml"}, **more["tenancy"]}}
    cluster = build({"control_plane": AWS, "pools": {"workers": None, **pools}, **more}, {})
    assert home(cluster) == expected
