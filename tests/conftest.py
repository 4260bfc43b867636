"""The lab's cluster, and variations of it, built from the model without the loader's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.spec import Cluster, ClusterSpec, HostsFile

LAB = Path(__file__).parents[1] / "inventories" / "lab"


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        both[key] = _merged(base[key], value) if nested else value
    return {key: value for key, value in both.items() if value is not None}


@pytest.fixture(scope="session")
def build() -> Callable[..., Cluster]:
    """build({"etcd": {"main": {"members": 5}}}): the lab with these fields changed. Mappings are
    merged, everything else is replaced, and None takes a field away."""
    spec = yaml.safe_load((LAB / "cluster.yaml").read_text())
    hosts = HostsFile.model_validate(yaml.safe_load((LAB / "hosts.yaml").read_text())).hosts

    def built(changes: Mapping[str, Any] | None = None, hosts_by_pool: Mapping[str, Any] | None = None) -> Cluster:
        chosen = {"workers": hosts} if hosts_by_pool is None else dict(hosts_by_pool)
        return Cluster(spec=ClusterSpec.model_validate(_merged(spec, changes or {})), hosts=chosen)

    return built


@pytest.fixture(scope="session")
def lab(build: Callable[..., Cluster]) -> Cluster:
    return build()
