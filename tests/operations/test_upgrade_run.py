"""`menagerie upgrade` from its command line, and the order of its stages; its parts are fakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import versions
from cluster.errors import FailedError, TimedOutError
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.plan import Action, Component, ResourceChange
from operations.plan import StackPlan as EnginePlan
from operations.record.journal import Unrecorded
from operations.rolling import Rolled, RollOutcome, RollState
from operations.upgrade import run as upgrade_run
from operations.upgrade.parts import RunningVersions
from operations.upgrade.plan import plan
from operations.upgrade.run import Choices, Upgrade, review
from tests.cli.terminal import Menagerie, Ran, command

OLD, NEW = "1.35.4", "1.36.4"
BEFORE, NOW = "2.2.9", versions.CONTAINERD
HOSTS = ("api-1", "api-2")
WORKERS = ("worker-1", "worker-2", "worker-3")


def runs(version: str, containerd: str = NOW) -> RunningVersions:
    nodes = dict.fromkeys(WORKERS, NodePrograms(version, containerd))
    return RunningVersions(dict.fromkeys(HOSTS, version), frozenset({version}), version, version, nodes)


class Quiet:
    """Receives progress."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def step(self, name: str) -> Any:
        from contextlib import nullcontext

        self.begun.append(name)
        return nullcontext()

    def detail(self, text: str) -> None: ...


class Parts:
    """What stages call. calls: the calls in order. stops: what a stage raises, by its first word here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.stops: dict[str, Exception] = {}
        self.failed = ""
        monkeypatch.setattr(upgrade_run.lab, "prepare", lambda *_: self._did("prepare"))
        monkeypatch.setattr(upgrade_run, "open_stack", lambda *_: SimpleNamespace(up=self._up))
        monkeypatch.setattr(upgrade_run.Access, "from_stack", lambda *_: self.access)
        monkeypatch.setattr(upgrade_run, "Servers", lambda *_: SimpleNamespace(replace=self._replace))
        monkeypatch.setattr(upgrade_run, "Nodes", lambda *_: SimpleNamespace(bring=self._bring))
        monkeypatch.setattr(upgrade_run.addons, "record_version", lambda api, version: self._did(f"said {version}"))
        monkeypatch.setattr(upgrade_run.addons, "roll_proxy", lambda api, version, *_: self._did(f"proxy {version}"))
        monkeypatch.setattr(upgrade_run.configure, "tokens", lambda *_: None)
        self.access: Any = SimpleNamespace(api=lambda: None)

    def _did(self, what: str) -> None:
        self.calls.append(what)
        if error := self.stops.get(what.partition(" ")[0]):
            raise error

    def _up(self, on_event: Any, only: tuple[str, ...] | None) -> tuple[None, dict[str, object]]:
        self._did(f"engine {only}")
        return None, {}

    def _replace(self, names: tuple[str, ...], report: Any) -> None:
        self._did(f"servers {' '.join(names)}")

    def _bring(self, hosts: tuple[str, ...], report: Any, tell: Any) -> Rolled:
        self._did(f"workers {' '.join(hosts)}")
        states = [RollState.FAILED if host == self.failed else RollState.DONE for host in hosts]
        return Rolled(tuple(RollOutcome(host, state, 1.0, "no") for host, state in zip(hosts, states, strict=True)))


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(monkeypatch)


def upgrade(cluster: Cluster, parts: Parts, running: RunningVersions) -> Quiet:
    steps = Quiet()
    made = plan(cluster, running)
    Upgrade(cluster, parts.access, made, Choices(), Unrecorded(), steps).run()
    return steps


def test_a_rollback_has_the_stages_of_an_upgrade_in_reverse(build: Callable[..., Cluster], parts: Parts) -> None:
    steps = upgrade(build({"kubernetes": {"version": NEW}}), parts, runs(OLD))
    servers, workers = "servers api-1 api-2", ["engine ('datacentre',)", "workers worker-1 worker-2 worker-3"]
    assert parts.calls == ["prepare", servers, f"said {NEW}", f"proxy {NEW}", *workers]
    assert steps.begun == ["API servers", "kube-proxy", "workers at sites"]
    parts.calls.clear()
    upgrade(build({"kubernetes": {"version": OLD}}), parts, runs(NEW))
    assert parts.calls == ["prepare", *workers, f"said {OLD}", f"proxy {OLD}", servers]


@pytest.mark.parametrize("stage", ["servers", "proxy", "engine"])
def test_the_first_failed_stage_is_the_last_and_the_error_shows_how_to_continue_or_roll_back(
    build: Callable[..., Cluster], parts: Parts, stage: str
) -> None:
    parts.stops = {stage: TimedOutError("gave up after 180 s: api-1 is not ready yet")}
    with pytest.raises(FailedError) as raised:
        upgrade(build({"kubernetes": {"version": NEW}}), parts, runs(OLD))
    assert parts.calls[-1].startswith(stage)
    assert raised.value.code == "upgrade-stopped"
    assert "api-1 is not ready yet" in str(raised.value)
    assert "./menagerie upgrade lab (to roll back, set kubernetes.version to 1.35.4 first)" in str(raised.value)


def test_a_failed_worker_is_reported_with_how_to_continue(build: Callable[..., Cluster], parts: Parts) -> None:
    parts.failed = "worker-2"
    with pytest.raises(
        FailedError, match=r"(?s)2 of 3 workers now run Kubernetes 1\.36\.4.*worker-2: no.*menagerie upgrade"
    ):
        upgrade(build({"kubernetes": {"version": NEW}}), parts, runs(OLD))


def test_a_new_containerd_alone_changes_the_workers_and_their_mirror(
    build: Callable[..., Cluster], parts: Parts
) -> None:
    steps = upgrade(build({"kubernetes": {"version": NEW}}), parts, runs(NEW, BEFORE))
    assert parts.calls == ["prepare", "engine ('datacentre',)", "workers worker-1 worker-2 worker-3"]
    assert steps.begun == ["workers at sites"]


def test_a_worker_that_fails_with_a_new_containerd_alone_is_reported_with_the_rollback(
    build: Callable[..., Cluster], parts: Parts
) -> None:
    parts.failed = "worker-2"
    with pytest.raises(FailedError) as raised:
        upgrade(build({"kubernetes": {"version": NEW}}), parts, runs(NEW, BEFORE))
    assert raised.value.code == "workers-failed"
    assert f"2 of 3 workers now run containerd {NOW}" in str(raised.value)
    assert "upgrade lab (to roll back, run the same command with the former release of Menagerie)" in str(raised.value)


class Stack:
    """An engine whose previews show what differs from the spec."""

    def __init__(self, cluster: Cluster, differs: dict[str, set[str]]) -> None:
        self.names = differs[cluster.spec.kubernetes.version]

    def preview(self, on_event: Any, refresh: bool) -> None: ...


@pytest.mark.parametrize(
    ("differs", "other"),
    [
        ({NEW: {"secrets", "api-1", "api-2"}, OLD: set()}, ""),
        ({NEW: {"api-2"}, OLD: {"secrets", "api-1"}}, ""),
        ({NEW: {"datacentre", "api-1"}, OLD: {"datacentre"}}, ""),
        ({NEW: {"api-1", "etcd-main-1"}, OLD: {"etcd-main-1"}}, "etcd-main-1"),
        ({NEW: {"api-1", "api-2"}, OLD: {"api-1"}}, "api-1"),
    ],
)
def test_a_spec_with_further_changes_is_refused(
    build: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch, differs: dict[str, set[str]], other: str
) -> None:
    opened: list[Stack] = []

    def changes(_: Any) -> EnginePlan:
        listed = tuple(ResourceChange(Action.UPDATE, name, "t", "t") for name in opened[-1].names)
        return EnginePlan((Component("", "whole cluster", listed),))

    monkeypatch.setattr(
        upgrade_run, "open_stack", lambda cluster, _: opened.append(Stack(cluster, differs)) or opened[-1]
    )
    monkeypatch.setattr(upgrade_run.Planner, "plan", changes)
    monkeypatch.setattr(upgrade_run.lab, "prepare", lambda *_: None)
    monkeypatch.setattr(upgrade_run.parts, "running", lambda *_: runs(OLD))
    monkeypatch.setattr(upgrade_run.preflight, "findings", lambda _: [])
    cluster = build({"kubernetes": {"version": NEW}})
    access: Any = SimpleNamespace()
    _, problems = review(cluster, access, Choices(), lambda _: None)
    assert len(problems) == bool(other)
    assert all(f"more than the version: {other}; " in each and "menagerie up lab" in each for each in problems)


@pytest.fixture
def menagerie(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], parts: Parts) -> Menagerie:
    monkeypatch.setattr("operations.stack.access_to", lambda *_: parts.access)
    monkeypatch.setattr("operations.lab.os.geteuid", lambda: 0)
    monkeypatch.setattr("operations.record.one_operation", lambda *_, **__: nullcontext(Unrecorded()))

    def call(running: RunningVersions, problems: list[str], *words: str, typed: str | None = None) -> Ran:
        monkeypatch.setattr(
            upgrade_run, "review", lambda cluster, access, choices, report, _: (plan(cluster, running), problems)
        )
        return command(monkeypatch, capsys)("upgrade", "lab", *words, typed=typed)

    return call


def test_a_dry_run_shows_running_versions_and_the_order_and_changes_nothing(menagerie: Menagerie, parts: Parts) -> None:
    done = menagerie(runs(OLD), [], "--dry-run")
    assert (done.code, parts.calls) == (0, [])
    assert "API servers: api-1 1.35.4, api-2 1.35.4; kube-proxy: 1.35.4" in done.err
    assert f"nodes: 3 with 1.35.4 and containerd {NOW}\n" in done.err
    assert (
        "1. API servers to 1.36.4: api-1, api-2\n2. kube-proxy to 1.36.4\n"
        f"3. workers at sites to 1.36.4 and containerd {NOW}: worker-1, worker-2, worker-3\n"
    ) in done.err
    assert done.out == "lab: nothing prevents Kubernetes 1.36.4; nothing was changed\n"


def test_a_new_containerd_alone_is_shown_confirmed_and_reported(menagerie: Menagerie) -> None:
    looked_at = menagerie(runs(NEW, BEFORE), [], "--dry-run")
    assert f"nodes: 3 with 1.36.4 and containerd {BEFORE}\n1. workers at sites to 1.36.4 and containerd {NOW}: " in (
        looked_at.err
    )
    assert looked_at.out == f"lab: nothing prevents containerd {NOW}; nothing was changed\n"
    done = menagerie(runs(NEW, BEFORE), [], typed="y\n")
    assert (done.code, done.out) == (0, f"lab: now containerd {NOW}\n")
    assert f"Move lab to containerd {NOW}?" in done.err


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"], ["--json"]])
def test_all_blockers_are_reported_at_once_and_nothing_is_changed(
    menagerie: Menagerie, parts: Parts, more: list[str]
) -> None:
    done = menagerie(runs(OLD), ["a budget", "a mark"], *more)
    assert (done.code, parts.calls) == (2, [])
    assert "lab cannot move to Kubernetes 1.36.4 yet. Nothing was changed.\n  a budget\n  a mark" in done.err
    if more == ["--json"]:
        assert json.loads(done.out)["error"]["code"] == "upgrade-refused"


def test_without_a_terminal_or_a_yes_nothing_is_changed(menagerie: Menagerie, parts: Parts) -> None:
    assert menagerie(runs(OLD), []).code == 2
    assert menagerie(runs(OLD), [], typed="n\n").code == 1
    assert parts.calls == []


def test_a_yes_does_all_of_it(menagerie: Menagerie, parts: Parts) -> None:
    done = menagerie(runs(OLD), [], typed="y\n")
    assert (done.code, done.out) == (0, "lab: now Kubernetes 1.36.4\n")
    assert "Move lab to Kubernetes 1.36.4?" in done.err
    assert len(parts.calls) == 6


def test_if_everything_is_up_to_date_nothing_is_asked(menagerie: Menagerie, parts: Parts) -> None:
    done = menagerie(runs(NEW), [])
    assert (done.code, done.out) == (
        0,
        f"lab: everything selected already runs Kubernetes 1.36.4 and containerd {NOW}\n",
    )
    assert parts.calls == []


def test_json_says_what_was_done(menagerie: Menagerie) -> None:
    done = menagerie(runs(OLD), [], "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert (document["done"], document["servers"], document["wanted"]) == (True, ["api-1", "api-2"], NEW)


def test_an_unknown_pool_is_refused_with_the_list_of_pools(menagerie: Menagerie) -> None:
    done = menagerie(runs(OLD), [], "--pool", "gpu")
    assert done.code == 2
    assert "lab has no pool gpu at a site; it has: workers" in done.err
