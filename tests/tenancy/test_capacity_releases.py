"""API servers of each release add tolerations, also during an upgrade and a rollback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.allocations import TEAM_KEY
from cluster.releases import EARLY, SUPPORTED, minor
from cluster.spec import Cluster
from controllers.tenancy.directory.model import NoPoliciesError
from tests.control_plane.real_api import serving, storing
from tests.operations.real_cluster import program
from tests.tenancy.hosts import capacity, converge, of_pools
from tests.tenancy.real import Server
from tests.waiting import until
from tools import manifest

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("tenancy_releases")]  # soak builds the release before

OLD, NEW = (release.tested for release in SUPPORTED.values())
SPACE = {"metadata": {"name": "team-robotics", "labels": {"menagerie.dev/team": "robotics"}}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}


def of(version: str) -> Callable[[str], Path]:
    return lambda name: program(manifest.at(name, version) if name.startswith("kube") else name)


def early(version: str) -> list[str]:
    return [f"--{name}={value}" for name, value in EARLY.get(minor(version), {}).items()]


def given(server: Server) -> list[dict[str, Any]]:
    path = "/api/v1/namespaces/team-robotics/pods?dryRun=All"
    status, pod = server.real.call("POST", path, POD)
    return [each for each in pod["spec"]["tolerations"] if each["key"] == TEAM_KEY] if status == 201 else []


def test_policies_of_one_release_work_in_the_other(build: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = of_pools(build, {"workers": 1})
    expected = [{"key": TEAM_KEY, "operator": "Equal", "value": "robotics", "effect": "NoSchedule"}]
    with storing(program, tmp_path) as etcd:
        for number, version in enumerate((OLD, NEW, OLD)):
            folder = tmp_path / str(number)
            folder.mkdir()
            with serving(of(version), folder, "--etcd-servers", etcd, *early(version)) as real:
                server = Server(real, folder)
                real.call("POST", "/api/v1/namespaces", SPACE)
                review, applied = converge(server, cluster)
                assert (applied.failed, bool(review.rules)) == ((), number == 0), [rule.reason for rule in review.rules]
                until(lambda server=server: given(server) == expected)


def test_an_older_release_that_does_not_serve_them_is_refused(build: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = of_pools(build, {"workers": 1})
    with storing(program, tmp_path) as etcd, serving(of(OLD), tmp_path, "--etcd-servers", etcd) as real:
        server = Server(real, tmp_path)
        pytest.raises(NoPoliciesError, capacity, server, cluster).match("`menagerie up` replaces them")
