"""Following pods and keeping the table, with a kernel in memory: what is asked of it, and what is kept in files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from menagerie_traffic import layout, totals
from menagerie_traffic.agent import Agent, Settings
from menagerie_traffic.api import Pod
from menagerie_traffic.table import Count, Live

from tests.traffic.node import Node

POD = Pod("u-1", "team-a", "web", False)


class Kernel:
    """A table in memory, with the methods of `Table`."""

    layout = "layout"

    def __init__(self) -> None:
        self.at = self.made = self.commits = 0
        self.pods: dict[str, str] = {}
        self.counts: dict[str, Count] = {}
        self.has_rules = False

    def generation(self) -> int:
        return self.commits

    def handle(self) -> int:
        return self.at

    def live(self, full: bool = True) -> Live:
        names = {address: layout.counter("out", "pod", each) for address, each in self.pods.items()}
        return Live(self.at, {"forward": 1} if self.has_rules else {}, {"out-pod": names} if self.at else {})

    def is_whole(self, live: Live) -> bool:
        return bool(live.handle and live.rules)

    def counters(self) -> dict[str, Count]:
        return dict(self.counts) if self.at else {}

    def rebuild(self, pods: Mapping[str, str]) -> None:
        self.commits += 1
        if not self.at:
            self.made += 1
            self.at, self.counts = self.made, {}
        self.has_rules, self.pods = True, dict(pods)
        self._make_counters()

    def change(self, removed: Sequence[str], added: Mapping[str, str]) -> None:
        self.commits += 1
        for each in removed:
            if each not in self.pods:
                raise FileNotFoundError(2, f"no address {each}")
            del self.pods[each]
        assert not set(added) & set(self.pods)
        self.pods.update(added)
        self._make_counters()

    def forget(self, counters: Sequence[str]) -> None:
        for name in counters:
            assert layout.named(name)[2] not in self.pods.values()  # type: ignore[index]
            del self.counts[name]

    def count(self, namespace: str, bytes_: int) -> None:
        name = layout.counter("out", "pod", namespace)
        before = self.counts[name]
        self.counts[name] = Count(before.bytes + bytes_, before.packets + 1)

    def _make_counters(self) -> None:
        for namespace in {"", *self.pods.values()}:
            self.counts.setdefault(layout.counter("out", "pod", namespace), Count(0, 0))


class Api:
    """The API as the thread of `Following` leaves it."""

    heard_at = 12.0

    def __init__(self, *pods: Pod) -> None:
        self.pods: dict[str, Pod] | None = {each.uid: each for each in pods}


class Run:
    """An agent on a node. `step` lets it look at everything at once."""

    def __init__(self, node: Node, kernel: Kernel, api: Api) -> None:
        self.node, self.kernel, self.api = node, kernel, api
        self.lines: list[str] = []
        self.begin()

    def begin(self) -> None:
        settings = Settings(str(self.node.metrics), str(self.node.totals), 0.0)
        self.agent = Agent(self.kernel, self.node.reservations(), self.api, settings, self.lines.append)  # type: ignore[arg-type]
        self.agent.start()

    def step(self, pods_changed: bool = False) -> None:
        self.agent._due = dict.fromkeys(self.agent._due, 0.0)
        self.agent.step(lambda _: pods_changed)

    def total(self, namespace: str) -> int:
        return totals.read(str(self.node.totals)).totals[layout.counter("out", "pod", namespace)].bytes


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Node(tmp_path), Kernel(), Api(POD))


def test_a_pod_is_in_the_table_while_it_has_its_address(run: Run) -> None:
    assert run.kernel.pods == {}
    run.node.start(POD, "10.0.0.5")
    run.step()
    assert run.kernel.pods == {"10.0.0.5": "team-a"}
    run.node.end("10.0.0.5")
    run.step()
    assert run.kernel.pods == {}


def test_an_address_that_is_used_again_has_nobody_until_the_api_knows_its_pod(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    other = Pod("u-2", "team-b", "web", False)
    run.node.end("10.0.0.5")
    run.node.start(other, "10.0.0.5")
    run.step()
    assert run.kernel.pods == {}
    run.api.pods = {"u-2": other}
    run.step(pods_changed=True)
    assert run.kernel.pods == {"10.0.0.5": "team-b"}


def test_a_killed_agent_goes_on_with_the_table_and_loses_nothing(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    run.step()
    run.kernel.count("team-a", 23)
    made = run.kernel.made
    run.api.pods = None  # the API does not answer when it is back
    run.begin()
    assert (run.kernel.pods, run.kernel.made, run.total("team-a")) == ({"10.0.0.5": "team-a"}, made, 123)


def test_an_address_that_changed_hands_while_no_agent_ran_is_nobodys(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.node.end("10.0.0.5")
    run.node.start(Pod("u-2", "team-b", "x", False), "10.0.0.5")
    run.begin()
    assert run.kernel.pods == {}


def test_a_deleted_table_is_made_again_and_totals_go_on(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    run.step()
    run.kernel.at, run.kernel.pods, run.kernel.has_rules = 0, {}, False
    run.kernel.commits += 1
    run.step()
    assert (run.kernel.pods, run.kernel.has_rules) == ({"10.0.0.5": "team-a"}, True)
    assert run.lines == ["somebody deleted table menagerie_traffic: at most 1 s were not counted"]
    run.kernel.count("team-a", 5)
    run.step()
    assert run.total("team-a") == 105
    assert totals.read(str(run.node.totals)).resets == 1


@pytest.mark.parametrize("what", ["rules", "addresses"])
def test_a_flushed_table_is_filled_again_and_its_counters_go_on(run: Run, what: str) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    if what == "rules":
        run.kernel.has_rules = False
    else:
        run.kernel.pods = {}
    run.kernel.commits += 1
    # Confirming addresses would notice as well.
    run.agent._due["confirm"] = float("inf")
    run.agent._look(full=False)
    assert (run.kernel.pods, run.kernel.has_rules) == ({"10.0.0.5": "team-a"}, True)
    run.step()
    assert (run.total("team-a"), totals.read(str(run.node.totals)).resets) == (100, 0)


def test_addresses_that_the_kernel_dropped_are_put_back(run: Run) -> None:
    """As after a pause of the whole machine, longer than the life of an address."""
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.pods = {}
    run.step()
    assert run.kernel.pods == {"10.0.0.5": "team-a"}
    assert len(run.lines) == 1


def test_another_layout_replaces_the_table_and_keeps_its_counters(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    run.kernel.layout, commits = "another", run.kernel.commits
    run.begin()
    assert run.kernel.commits == commits + 1
    assert (run.kernel.pods, run.total("team-a")) == ({"10.0.0.5": "team-a"}, 100)


def test_a_damaged_file_is_kept_aside_and_counting_goes_on(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    run.node.totals.write_text("{")
    run.begin()
    assert run.node.totals.with_name("totals.json.damaged").read_text() == "{"
    assert "is kept as" in run.lines[0]
    assert run.total("team-a") == 100


def test_a_stop_keeps_what_was_counted_last(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.step()
    run.kernel.count("team-a", 100)
    run.agent.stop()
    assert run.total("team-a") == 100
    assert run.kernel.pods == {"10.0.0.5": "team-a"}


def test_metrics_are_written_for_the_collector(run: Run) -> None:
    run.node.start(POD, "10.0.0.5")
    run.node.start(Pod("u-9", "team-z", "new", False), "10.0.0.6")
    run.api.pods = {**(run.api.pods or {}), "h": Pod("h", "kube-system", "proxy", True)}
    run.step()
    run.kernel.count("team-a", 100)
    run.step()
    text = run.node.metrics.read_text()
    assert 'menagerie_traffic_bytes_total{namespace="team-a",direction="out",class="pod"} 100\n' in text
    assert 'menagerie_traffic_addresses{state="waiting"} 1\n' in text
    assert 'menagerie_traffic_host_network_pods{namespace="kube-system"} 1\n' in text
    assert json.loads(run.node.totals.read_text())["held"] == {"10.0.0.5": ["sandbox-u-1", "team-a"]}
