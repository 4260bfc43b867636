"""The lab's cluster and variations of it, and what an API-server host of it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import HostConfig
from cluster.spec import Cluster, ClusterSpec, HostsFile
from control_plane import host_config
from network.addresses import plan
from tools import build as programs
from tools.golang import GoMissing

LAB = Path(__file__).parents[2] / "inventories" / "lab"


@pytest.fixture(scope="session")
def source() -> ArtefactSource:
    return ArtefactSource(mirror=None, sha256={artefact.source: "0" * 64 for artefact in catalogue().values()})


@pytest.fixture(scope="session")
def build() -> Callable[..., Cluster]:
    """build({"network": {"domain": "example"}}): the lab with these fields changed; None takes one away."""
    read = YAML(typ="safe")
    spec = read.load(LAB / "cluster.yaml")
    hosts = HostsFile.model_validate(read.load(LAB / "hosts.yaml")).hosts

    def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        both = dict(base)
        for key, value in changes.items():
            nested = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
            both[key] = merged(base[key], value) if nested else value
        return {key: value for key, value in both.items() if value is not None}

    def built(changes: Mapping[str, Any] | None = None) -> Cluster:
        return Cluster(spec=ClusterSpec.model_validate(merged(spec, changes or {})), hosts={"workers": hosts})

    return built


@pytest.fixture(scope="session")
def lab(build: Callable[..., Cluster]) -> Cluster:
    return build()


@pytest.fixture(scope="session")
def config(lab: Cluster, source: ArtefactSource) -> HostConfig:
    return host_config(lab, plan(lab), source)


@pytest.fixture(scope="session")
def program() -> Callable[[str], Path]:
    """program("kubeadm"): its path in the cache; the test is skipped where it was not built yet."""

    def found(name: str) -> Path:
        try:
            built = {str(state["program"]): Path(str(state["path"])) for state in programs.states() if state["built"]}
        except GoMissing:
            built = {}
        if name not in built:
            pytest.skip(f"no {name} in the cache")
        return built[name]

    return found
