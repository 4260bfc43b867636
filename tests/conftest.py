"""The lab's cluster, and variations of it, built from the model without the loader's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

import cli  # noqa: F401 - before gRPC starts, as in the command
from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec

# Machines are shared: how long one example takes says nothing.
settings.register_profile("menagerie", deadline=None)
settings.load_profile("menagerie")

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
    merged, everything else is replaced, and None takes a field away. Its pool in the region, its links and its storage
    are left out: who wants some says which."""
    spec = yaml.safe_load((LAB / "cluster.yaml").read_text())
    spec["pools"] = {name: pool for name, pool in spec["pools"].items() if "site" in pool}
    for site in spec["sites"].values():
        del site["links"], site["ceph"]
    hosts = HostsFile.model_validate(yaml.safe_load((LAB / "hosts.yaml").read_text())).hosts
    hosts = tuple(host.model_copy(update={"links": {}}) for host in hosts)

    def built(changes: Mapping[str, Any] | None = None, hosts_by_pool: Mapping[str, Any] | None = None) -> Cluster:
        chosen = {"workers": hosts} if hosts_by_pool is None else dict(hosts_by_pool)
        return Cluster(spec=ClusterSpec.model_validate(_merged(spec, changes or {})), hosts=chosen)

    return built


@pytest.fixture(scope="session")
def lab(build: Callable[..., Cluster]) -> Cluster:
    return build()


# Folder or file -> the group whose tests share what an engine has made: one process has them all.
_UNDER_THE_ENGINE = {
    "provisioning/test_emulator.py": "redfish",
    "stacks/aws": "aws",
    "stacks/azure": "azure",
    "stacks/gcp": "gcp",
    "stacks/test_engine.py": "engine",
    "stacks/test_plain_cli.py": "plain",
    "stacks/test_policy_pack.py": "policies",
    "simcloud/test_engine.py": "simcloud",
    "simcloud/test_interruptions.py": "simcloud",
    "validation/test_stages.py": "validation",
    "validation/test_fleet.py": "validation",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole stacks take minutes: they are no part of the fast set."""
    root = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(root).as_posix()
        for under, group in _UNDER_THE_ENGINE.items():
            if place == under or place.startswith(f"{under}/"):
                item.add_marker(pytest.mark.engine)
                item.add_marker(pytest.mark.xdist_group(group))
