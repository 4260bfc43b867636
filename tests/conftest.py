"""The lab's cluster and variants of it, built from the model without the loader's checks."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

import cli  # noqa: F401 - before gRPC starts, as in the command
from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec
from tests import beside, programs, sharing
from tests.digests import with_digests
from tests.levels import TIMED, UNDER_THE_ENGINE, WITH_PROGRAMS, is_under
from tests.skips import failure

# Machines are shared, so the duration of one example means nothing.
settings.register_profile("menagerie", deadline=None)
settings.load_profile("menagerie")

# A process that has imported the clouds' SDKs has millions of objects, and by default searches all of them for cycles again and
# again. Measured over 1,306 tests: a tenth of the CPU.
gc.set_threshold(200_000, 50, 1000)

LAB = Path(__file__).parents[1] / "inventories" / "lab"


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        is_nested = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        merged[key] = _merged(base[key], value) if is_nested else value
    return {key: value for key, value in merged.items() if value is not None}


@pytest.fixture(scope="session")
def build() -> Callable[..., Cluster]:
    """Return a function that builds the lab with changed fields, such as build({"etcd": {"main": {"members": 5}}}).

    Mappings are merged, everything else is replaced, and None removes a field. The lab's pool in the region, its autoscaler,
    gangs, links and storage are left out; tests add what they need.
    """
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


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests away from the backend that their user is logged in to, and from the settings of the user's terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CREDENTIALS_PATH", str(tmp_path_factory.mktemp("login")))
        patch.setenv("TERM", "xterm-256color")
        for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"):
            patch.delenv(name, raising=False)
        yield


# Groups that take minutes, longest first: if one of them started last, it would run alone at the end. xdist gives a worker its
# next group when two tests of the present one are left, and never reassigns it. So a group whose only test is long is
# followed by one that is shorter than the rest of the run.
_FIRST = (
    "keys",
    "validation-whole",
    "tenancy",
    "operations/test_etcds.py",
    "etcd/test_backups_on_hosts.py",
    "real_cluster",
    "controllers",
    "vpn",
    "operations/test_etcd_roll.py",
    "operations/test_etcds_broken.py",
    "redfish",
    "operations/test_trials.py",
    "operations/test_drain.py",
    "tenancy/test_ldap.py",
    "userdata/test_turns.py",
    "aws",
    "gcp",
    "azure",
)

_SLOW_S = 600
"""The first test of a group also waits for the servers that the group shares."""

_HANGS_S = 2400
"""Next to the lab, a test may almost stop for half an hour, or wait for programs that are built. After this, it hangs."""


def pytest_configure() -> None:
    """Print the stacks of all threads at SIGUSR1, past the capture of output: then a run that hangs says where."""
    faulthandler.register(signal.SIGUSR1, file=os.dup(2))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, so that they are not in the fast set, and order all tests. The lab is removed after its last test."""
    items.sort(key=lambda item: item.path.name == "test_9_down.py")
    for item in items:
        for mark in _marks(item.path):
            if mark.name != "xdist_group" or not item.get_closest_marker("xdist_group"):
                item.add_marker(mark)
        _limit(item)
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        first.setdefault(sharing.group_of(item), number)
    items.sort(key=lambda item: (_start_rank(item), first[sharing.group_of(item)]))


@cache
def _marks(file: Path) -> tuple[pytest.MarkDecorator, ...]:
    """Return the marks that the tables of tests.levels have for a file's tests."""
    place, marks = file.relative_to(Path(__file__).parent).as_posix(), []
    for under, group in UNDER_THE_ENGINE.items():
        if is_under(place, under):
            marks += [pytest.mark.engine, pytest.mark.xdist_group(group)]
            marks += [pytest.mark.timed] if group in TIMED else []
    for under in WITH_PROGRAMS:
        if is_under(place, under):
            marks += [pytest.mark.programs, pytest.mark.xdist_group(under)]
            marks += [pytest.mark.timed] if under in TIMED else []
    return tuple(marks)


def _limit(item: pytest.Item) -> None:
    """Give every test the limit of one that hangs with MENAGERIE_NO_CLOCK; otherwise, give slow tests a longer one."""
    if "MENAGERIE_NO_CLOCK" in os.environ:
        item.add_marker(pytest.mark.timeout(_HANGS_S), append=False)
    elif _needs_programs(item) and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(_SLOW_S))


def _start_rank(item: pytest.Item) -> int:
    """Return the item's place: groups that take minutes, then what starts no program, then the rest.

    API servers and etcds use CPU for as long as they run, and next to the lab a test may run for ten times as long. So they
    start late, when the lab is about to end. The longest of them is in `_FIRST`: started last, it ran alone for four minutes.
    While programs are built, what needs one comes after all others.
    """
    group, needs = sharing.group_of(item), _needs_programs(item)
    rank = _FIRST.index(group) if group in _FIRST else len(_FIRST) + bool(item.get_closest_marker("programs"))
    is_later = needs and bool(os.environ.get(beside.BUILDING))
    return rank + is_later * (len(_FIRST) + 2)


def _needs_programs(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("programs", "engine", "needs_programs"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wait for programs that are still being built; skip the test if one is missing then."""
    if _needs_programs(item):
        beside.wait_for_programs()
    programs.starts(item)
    programs.skip_without_programs(item)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Let the process end without a search for cycles among all these objects, which takes seconds."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """End what a group shares after its last test."""
    try:
        yield
    finally:
        if nextitem is None or sharing.group_of(nextitem) != sharing.group_of(item):
            sharing.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure on a prepared machine."""
    report = yield
    if os.environ.get("MENAGERIE_NO_SKIPS") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if message := failure(reason):
            report.outcome, report.longrepr = "failed", f"{item.nodeid}: {message}"
    return report
