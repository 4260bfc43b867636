"""The lab's cluster, and variations of it, built from the model without the loader's checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

import cli  # noqa: F401 - before gRPC starts, as in the command
from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec
from tests import sharing
from tests.digests import with_digests
from tests.levels import TIMED, UNDER_THE_ENGINE, WITH_PROGRAMS, is_under
from tests.skips import failure

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
    merged, everything else is replaced, and None takes a field away. Its pool in the region with what makes it grow, its
    gangs, its links and its storage are left out: who wants some says which."""
    spec = yaml.safe_load((LAB / "cluster.yaml").read_text())
    del spec["autoscaler"], spec["scheduling"]
    spec["pools"] = {name: pool for name, pool in spec["pools"].items() if "site" in pool}
    for site in spec["sites"].values():
        del site["links"], site["ceph"]
    hosts = HostsFile.model_validate(yaml.safe_load((LAB / "hosts.yaml").read_text())).hosts
    hosts = tuple(host.model_copy(update={"links": {}}) for host in hosts)

    def built(changes: Mapping[str, Any] | None = None, hosts_by_pool: Mapping[str, Any] | None = None) -> Cluster:
        chosen = {"workers": hosts} if hosts_by_pool is None else dict(hosts_by_pool)
        return Cluster(spec=with_digests(ClusterSpec.model_validate(_merged(spec, changes or {}))), hosts=chosen)

    return built


@pytest.fixture(scope="session")
def lab(build: Callable[..., Cluster]) -> Cluster:
    return build()


# Groups that take minutes, longest first: begun last, one of them would run alone at the end. xdist gives each of the four
# workers two groups at once, and takes none back: so four short ones follow the first four. The others follow as they are.
_FIRST = (
    "rotation",
    "keys",
    "operations/test_etcds.py",
    "controllers",
    "operations/test_drain.py",
    "operations/test_trials.py",
    "tenancy/test_ldap.py",
    "userdata/test_turns.py",
    "etcd/test_backups_on_hosts.py",
    "vpn",
    "aws",
    "tenancy",
    "gcp",
    "azure",
)

_SLOW_S = 600
"""The first test of a group also waits for what all of them share."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes is no part of the fast set. The lab goes down after the last test that uses it."""
    items.sort(key=lambda item: item.path.name == "test_9_down.py")
    for item in items:
        for mark in _marks(item.path):
            if mark.name != "xdist_group" or not item.get_closest_marker("xdist_group"):
                item.add_marker(mark)
        _limit(item)
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        first.setdefault(sharing.group_of(item), number)
    items.sort(key=lambda item: (_is_begun_later(item), first[sharing.group_of(item)]))


@cache
def _marks(file: Path) -> tuple[pytest.MarkDecorator, ...]:
    """What the tables of tests.levels say of a file's tests."""
    place, found = file.relative_to(Path(__file__).parent).as_posix(), []
    for under, group in UNDER_THE_ENGINE.items():
        if is_under(place, under):
            found += [pytest.mark.engine, pytest.mark.xdist_group(group)]
            found += [pytest.mark.timed] if group in TIMED else []
    for under in WITH_PROGRAMS:
        if is_under(place, under):
            found += [pytest.mark.programs, pytest.mark.xdist_group(under)]
            found += [pytest.mark.timed] if under in TIMED else []
    return tuple(found)


def _limit(item: pytest.Item) -> None:
    """No limit of time at all with MENAGERIE_NO_CLOCK, a longer one for what takes minutes."""
    slow = item.get_closest_marker("engine") or item.get_closest_marker("programs")
    if "MENAGERIE_NO_CLOCK" in os.environ:
        item.add_marker(pytest.mark.timeout(0), append=False)
    elif slow and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(_SLOW_S))


def _is_begun_later(item: pytest.Item) -> int:
    group = sharing.group_of(item)
    return _FIRST.index(group) if group in _FIRST else len(_FIRST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """What a group shares ends with it."""
    try:
        yield
    finally:
        if nextitem is None or sharing.group_of(nextitem) != sharing.group_of(item):
            sharing.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip is a failure on a machine that was prepared."""
    report = yield
    if os.environ.get("MENAGERIE_NO_SKIPS") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if said := failure(reason):
            report.outcome, report.longrepr = "failed", f"{item.nodeid}: {said}"
    return report
