from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from sandbox.lab import preflight, rootfs
from sandbox.lab.errors import LabError
from sandbox.lab.plan import LabSpec
from sandbox.lab.preflight import Machine
from tools import apt

SPEC = LabSpec("lab", "10.77.0.0/24", {"r1": "10.78.1.0/24"}, "10.77.0.10", (), "", "", "", "")
GOOD = Machine(
    uid=0,
    system="linux",
    memory=16 * 2**30,
    disk=100 * 2**30,
    routes={IPv4Network("0.0.0.0/0"): "eth0", IPv4Network("192.168.1.0/24"): "eth0"},
    filesystems=frozenset({"overlay", "ext4"}),
    has_cgroups=True,
)


def test_a_suitable_machine_has_no_problem() -> None:
    assert preflight.problems(GOOD, SPEC) == ()


def test_all_problems_are_reported_at_once() -> None:
    bad = replace(
        GOOD,
        uid=1000,
        memory=2**30,
        disk=2**30,
        routes={IPv4Network("10.0.0.0/8"): "vpn0"},
        has_cgroups=False,
        missing_programs=("debootstrap", "nftables"),
        missing_features=("vxlan",),
    )
    problems = "\n".join(preflight.problems(bad, SPEC))
    for word in ("root", "debootstrap nftables", "GiB of memory", "GiB of disk space", "VXLAN", "cgroup", "rack r1"):
        assert word in problems


@pytest.mark.parametrize(
    ("route", "range_"),
    [("10.77.0.128/25", "nodes"), ("10.78.0.0/16", "rack r1"), ("10.79.2.0/24", "lab secret store")],
)
def test_a_route_of_the_machine_that_overlaps_a_range_is_reported(route: str, range_: str) -> None:
    machine = replace(GOOD, routes={IPv4Network(route): "vpn0"})
    (problem,) = preflight.problems(machine, SPEC)
    assert problem.startswith(range_)
    assert f"{route} through vpn0" in problem


def test_routes_into_a_lab_are_not_a_conflict() -> None:
    machine = replace(GOOD, routes={IPv4Network("10.77.0.0/24"): "mgr-0a1b2c"})
    assert preflight.problems(machine, SPEC) == ()


def test_memory_used_by_a_running_lab_is_not_reported_as_missing() -> None:
    machine = replace(GOOD, memory=2**30, lab_lives=True)
    assert preflight.problems(machine, SPEC) == ()


def test_on_another_system_than_linux_only_that_is_reported() -> None:
    (problem,) = preflight.problems(replace(GOOD, system="darwin", uid=501, memory=0), SPEC)
    assert "Linux" in problem


def test_the_error_contains_every_reason() -> None:
    error = preflight.unfit(["one", "two"])
    assert str(error).splitlines()[1:] == ["  - one", "  - two"]


def test_every_package_that_preflight_may_request_is_listed() -> None:
    assert set(preflight._PROGRAMS.values()) == set(preflight.packages())


def test_hosts_are_built_from_the_archive_that_the_machine_itself_uses() -> None:
    targets = "bookworm-updates main http://a/debian/\nbookworm main http://b/debian/\nbookworm main http://c/debian/\n"
    assert rootfs.mirror(apt.of_release(targets)) == "http://b/debian"


def test_a_machine_without_the_hosts_release_gets_the_line_to_add() -> None:
    with pytest.raises(LabError, match="Debian 13"):
        rootfs.mirror(apt.of_release("jammy main http://b/ubuntu/\n"))


def test_a_list_file_is_read_without_comments(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("# why\nnftables\n\n  iproute2  \n")
    assert rootfs.read_list(tmp_path / "list.txt") == ("nftables", "iproute2")
