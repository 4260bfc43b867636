"""Rolls to another payload: real etcds, agents and menagerie-apply, with a fake systemd."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from clients.agent_client import AgentError
from cluster.errors import FailedError
from operations.etcds import roll
from operations.etcds.look import EtcdView
from operations.etcds.roll import RollPlan
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Unrecorded
from tests.etcd.real import NEEDS_ETCD
from tests.operations.etcds_support import ROLES, Site, cut_everywhere, quiet, silent, site
from tests.operations.rolled_host import AGENT

pytestmark = NEEDS_ETCD
QUOTAS = {"main": 3 * 2**30, "events": 32 * 2**20}
WRITTEN = {"main": {"quota": "3GiB"}, "events": {"members": 3, "hosts": "main", "quota": "32MiB"}}


@pytest.fixture(scope="module")
def _site(build: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(build, tmp_path_factory.mktemp("rolled")) as made:
        yield made


@pytest.fixture
def here(_site: Site) -> Site:
    """Reset every host to the state in which its machine was created."""
    for host in _site.hosts.values():
        host.at, host.restarts = (lambda step: None), []
        host.be(host.text(_site.cluster))
    for units in _site.units.values():
        for name in units.names:
            units.words[name] = ""
    _site.make_whole()
    return _site


def want(here: Site, build: Any, agent: str = "one", more: str = "", spoil: str = "") -> None:
    """Do what `up` does after a change of the spec: put other payloads into stores and outputs."""
    cluster = build({"network": {"nodes": str(here.cluster.spec.network.nodes)}, "etcd": WRITTEN})
    for name, host in here.hosts.items():
        text = host.text(cluster, agent, more)
        if name == spoil:
            text = text.replace("--quota-backend-bytes=3221225472", "--no-such-flag=1")
        here.access.etcd_payloads[name] = text
        host.want(text)


def planned(here: Site, stale: str = "", roles: tuple[str, ...] = ("main", "events")) -> RollPlan:
    views = [here.view(role) for role in ROLES]
    return roll.plan("lab", views, here.access.etcd_payloads, roles, lambda: stale)


def run(here: Site, operation: Any = None) -> tuple[EtcdView, ...]:
    return roll.roll(planned(here), operation or Unrecorded(), quiet, silent)


def quotas(here: Site) -> dict[str, set[int]]:
    return {role: {each.agent["quota"] for each in here.view(role).members} for role in ROLES}


def test_members_apply_another_payload_one_after_another_under_load_and_no_write_fails_permanently(
    here: Site, build: Any
) -> None:
    want(here, build, agent="two")
    leader = here.view("main").leader
    assert leader
    failed, acknowledged, over = [], [], threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            tries = (here.ctl("main", "put", f"/roll/{number:05}", "x").returncode for _ in range(2))
            (acknowledged if 0 in tries else failed).append(f"/roll/{number:05}")

    order: list[str] = []
    down: list[int] = []

    def at(name: str, step: str) -> None:
        if step.startswith("systemctl restart etcd-"):
            order.append(name)
            down.append(sum(each.poll() is not None for each in here.fleet.running.values()))

    for name, host in here.hosts.items():
        host.at = lambda step, name=name: at(name, step)  # type: ignore[misc]
    writer = threading.Thread(target=write)
    writer.start()
    try:
        after = run(here)
    finally:
        over.set()
        writer.join()
    assert failed == []
    assert len(acknowledged) > 3
    assert all(each.healthy for view in after for each in view.members)
    assert all(status.applied > 0 and status.index > 0 for view in after for _, status in view.answering)
    assert quotas(here) == {role: {size} for role, size in QUOTAS.items()}
    assert list(dict.fromkeys(order))[-1] == leader.member.host
    assert down == [0] * 6
    assert all(AGENT in host.restarts and host.restarts[-1] == AGENT for host in here.hosts.values())
    for number in (1, 2, 3):
        keys = here.ctl("main", "get", "/roll/", "--prefix", "--keys-only", only=number).stdout.split()
        assert set(acknowledged) <= set(keys)
    assert planned(here).changes == ()


def test_a_roll_that_is_interrupted_anywhere_resumes_when_it_is_run_again(here: Site, build: Any) -> None:
    want(here, build, more="a timer")
    _, cuts = cut_everywhere(lambda operation: run(here, operation))
    # The progress of a run is read from the hosts: the next run starts after it.
    assert sorted(cuts) == [f"before host etcd-main-{number}" for number in (1, 2, 3)]
    assert quotas(here) == {role: {size} for role, size in QUOTAS.items()}
    restarts = [unit for host in here.hosts.values() for unit in host.restarts if unit.startswith("etcd-")]
    assert len(restarts) == 6


def test_a_host_that_is_interrupted_at_any_step_reaches_the_same_state(here: Site, build: Any) -> None:
    """Each step of menagerie-apply fails once, and the former payload's timer is removed."""
    want(here, build, more="a timer")
    run(here)
    steps: set[str] = set()

    def at(step: str) -> None:
        if step not in steps:
            steps.add(step)
            raise OSError(f"cut at {step}")

    for host in here.hosts.values():
        host.at = at
    want(here, build, agent="three")
    stops = 0
    while True:
        try:
            run(here)
            break
        except FailedError as error:
            stops += 1
            assert "cut at" in str(error)
            assert "./menagerie etcd roll lab" in str(error)
            assert any(change.host.is_half_way for change in planned(here).changes)
    assert stops == len(steps) >= 4
    assert not any((host.root / "units/more.timer").exists() for host in here.hosts.values())
    assert all(len(list(host.kept.glob("payload-*"))) == 1 for host in here.hosts.values())


def test_an_unknown_flag_stops_the_roll_at_the_first_host_and_the_former_payload_rolls_back(
    here: Site, build: Any
) -> None:
    before = {name: host.text(here.cluster) for name, host in here.hosts.items()}
    want(here, build, spoil="etcd-main-1")
    with pytest.raises(FailedError, match="the restart of .* failed.*\n.*\n.*\n.*former spec"):
        run(here)
    assert [each.problem == "" for each in here.view("main").members].count(False) == 1
    assert here.put("main", "/still", "written")
    # The unhealthy host is first, and nothing else may be unhealthy.
    assert planned(here).changes[0].host.name == "etcd-main-1"
    for name, host in here.hosts.items():
        here.access.etcd_payloads[name] = before[name]
        host.want(before[name])
    run(here)
    assert all(each.healthy for role in ROLES for each in here.view(role).members)


def test_all_blockers_are_reported_at_once_and_nothing_is_changed(here: Site, build: Any) -> None:
    want(here, build)
    with pytest.raises(EtcdRefusedError, match="no backup"):
        planned(here, "there is no backup of etcd main")
    here.fleet.kill("etcd-main-2")
    here.fleet.kill("etcd-events-3")
    with pytest.raises(EtcdRefusedError, match="(?s)etcd-main-2: .*etcd-events-3: "):
        planned(here)
    assert not any(host.restarts for host in here.hosts.values())


def test_a_host_accepts_only_the_payload_in_its_store(here: Site, build: Any) -> None:
    want(here, build)
    for host in here.hosts.values():
        host.stored = "0" * 64
    with pytest.raises(FailedError, match="the store assigns payload 0000000000000000 to this host, not"):
        run(here)
    with pytest.raises(AgentError, match="sha256 is not 64 hexadecimal digits"):
        here.etcd().agents["etcd-main-1"].apply("../../etc", "")
    assert not any(host.restarts for host in here.hosts.values())


def test_a_dry_run_lists_differing_flags_and_unchangeable_ones_are_refused(here: Site, build: Any) -> None:
    want(here, build)
    differences = planned(here).changes[0].differences
    assert any("--quota-backend-bytes=3221225472 (was " in line for line in differences)
    for name, text in here.access.etcd_payloads.items():
        here.access.etcd_payloads[name] = text.replace("--data-dir=/var/lib/etcd", "--data-dir=/srv")
    with pytest.raises(EtcdRefusedError, match=r"etcd-main.service changes --data-dir"):
        planned(here)


@pytest.mark.parametrize(
    ("running", "target", "allowed", "refused"),
    [
        (["3.6.13", "3.6.14"], "3.6.1", set(), ""),
        (["3.6.14"], "3.7.0", set(), ""),
        (["3.6.14", "3.7.0"], "3.7.1", set(), ""),
        (["3.6.14", "3.7.0"], "3.6.14", set(), ""),
        (["3.6.14"], "3.8.0", set(), "one minor release at a time; this would be from 3.6 to 3.8.0"),
        (["3.7.0"], "3.6.14", set(), 'after "etcdctl downgrade enable"'),
        (["3.7.0"], "3.6.14", {"3.6.0"}, ""),
        (["3.7.0"], "3.5.9", {"3.6.0"}, "one minor release at a time"),
        (["3.7.0"], "4.0.0", set(), "one minor release at a time"),
        ([], "3.6.14", set(), ""),
    ],
)
def test_etcd_versions_change_one_minor_release_at_a_time(
    running: list[str], target: str, allowed: set[str], refused: str
) -> None:
    reason = roll.version_rule(running, target, allowed)
    assert (refused in reason) if refused else reason == ""


def test_for_a_host_with_an_agent_without_payloads_the_error_says_what_to_do(here: Site, build: Any) -> None:
    want(here, build)
    views = [here.view(role) for role in ROLES]
    old = [
        dataclasses.replace(
            view,
            members=tuple(
                dataclasses.replace(each, agent={k: v for k, v in each.agent.items() if k != "payload"})
                for each in view.members
            ),
        )
        for view in views
    ]
    with pytest.raises(EtcdRefusedError, match='recreate its machine once.*"Recreate a host"'):
        roll.plan("lab", old, here.access.etcd_payloads, ROLES, lambda: "")
