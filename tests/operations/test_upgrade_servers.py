"""API servers replaced one after another, with a fake engine and fake API servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cluster.errors import RefusedError, TimedOutError
from cluster.spec import Cluster
from operations.record.journal import Unrecorded
from operations.upgrade import servers, versions
from operations.upgrade.guard import other_release, refuse_other_release
from operations.upgrade.plan import GROUP
from operations.upgrade.servers import Servers
from stacks.automation import targets
from stacks.errors import StackError

OLD, NEW = "1.35.4", "1.36.4"


class Region:
    """API servers, and an engine that replaces them. `unwell`: results of status, one per check, before all is healthy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, **hosts: str) -> None:
        self.cluster, self.hosts = cluster, hosts
        self.operation = Unrecorded()
        self.unwell: list[str] = []
        self.fails: set[str] = set()
        self.stays: set[str] = set()
        self.events: list[str] = []
        outputs = SimpleNamespace(api_servers=(), load_balancer_status=None)
        self.access: Any = SimpleNamespace(outputs=outputs)
        monkeypatch.setattr(versions, "hosts", lambda access: dict(self.hosts))
        monkeypatch.setattr(versions, "servers", lambda access: frozenset(filter(None, self.hosts.values())))
        monkeypatch.setattr(servers, "unhealthy_parts", self._unhealthy_parts)
        monkeypatch.setattr(servers, "patience_s", lambda cluster: 0.2)
        monkeypatch.setattr(servers, "GROUP_S", 0.2)

    def _unhealthy_parts(self, cluster: Cluster, access: Any, besides: frozenset[str]) -> str:
        why = self.unwell.pop(0) if self.unwell else ""
        self.events.append(why or "well")
        return why

    def _engine(self, names: tuple[str, ...]) -> Any:
        (name,) = names
        self.events.append(name)
        if name in self.fails:
            raise StackError("no room")
        for each in self.hosts if name == GROUP else (name,):
            if each not in self.stays:
                self.hosts[each] = NEW
        return self.access

    def replace(self, *names: str) -> None:
        made = Servers(self.cluster, self.access, self._engine, self.operation, pause=lambda _: None)
        made.replace(names, lambda _: None)


def test_each_is_validated_twice_in_a_row_before_the_next(monkeypatch: pytest.MonkeyPatch, lab: Cluster) -> None:
    region = Region(monkeypatch, lab, **{"api-1": OLD, "api-2": OLD})
    region.unwell = ["a node is away", "", "an add-on is away"]
    region.replace("api-1", "api-2")
    first = ["api-1", "a node is away", "well", "an add-on is away", "well", "well"]
    assert region.events == [*first, "api-2", "well", "well"]
    assert region.operation.steps == ["API server api-1", "API server api-2"]
    assert region.operation.facts == {"version": NEW}


@pytest.mark.parametrize("fault", ["engine", "version", "status"])
def test_the_first_failure_stops_the_replacement(monkeypatch: pytest.MonkeyPatch, lab: Cluster, fault: str) -> None:
    region = Region(monkeypatch, lab, **{"api-1": OLD, "api-2": OLD})
    region.fails = {"api-1"} if fault == "engine" else set()
    region.stays = {"api-1"} if fault == "version" else set()
    region.unwell = ["etcd-main-1: no answer"] * 100_000 if fault == "status" else []
    with pytest.raises((StackError, TimedOutError), match={"version": "api-1 runs 1.35.4"}.get(fault)):
        region.replace("api-1", "api-2")
    assert "api-2" not in region.events
    assert region.operation.steps == []


def test_a_group_is_one_run_of_the_engine_and_waited_for(monkeypatch: pytest.MonkeyPatch, lab: Cluster) -> None:
    region = Region(monkeypatch, lab, one=OLD, two=OLD, three=OLD)
    region.replace(GROUP)
    assert region.events == [GROUP, "well", "well"]


def test_a_group_that_stops_half_way_shows_which_versions_still_respond(
    monkeypatch: pytest.MonkeyPatch, lab: Cluster
) -> None:
    region = Region(monkeypatch, lab, one=OLD, two=OLD)
    region.stays = {"two"}
    with pytest.raises(TimedOutError, match=r"the API servers behind the load balancer run 1\.35\.4, 1\.36\.4"):
        region.replace(GROUP)


@pytest.mark.parametrize("hosts", [{"a": OLD}, {"a": OLD, "b": NEW}])
def test_up_refuses_another_release_and_shows_what_to_run(
    monkeypatch: pytest.MonkeyPatch, lab: Cluster, hosts: dict[str, str]
) -> None:
    region = Region(monkeypatch, lab, **hosts)
    with pytest.raises(RefusedError, match=rf"runs Kubernetes {OLD}, but its spec has {NEW}.*menagerie upgrade lab"):
        refuse_other_release(lab, region.access)


@pytest.mark.parametrize("hosts", [{"a": NEW, "b": NEW}, {"a": ""}])
def test_up_continues_with_the_same_release_or_a_silent_api(
    monkeypatch: pytest.MonkeyPatch, lab: Cluster, hosts: dict[str, str]
) -> None:
    assert other_release(lab, Region(monkeypatch, lab, **hosts).access) == ""


STACK = "urn:pulumi:lab::menagerie::pulumi:pulumi:Stack::menagerie-lab"
RESOURCES = [
    {"urn": STACK},
    *({"urn": f"u::{name}", "dependencies": list(needs)} for name, needs in {
        "datacentre": (), "pki": (), "secrets": ("u::datacentre", "u::pki"),
        "api-1": ("u::secrets",), "api-2": ("u::secrets",), "load-balancer": ("u::datacentre",),
    }.items()),
]  # fmt: skip


def test_the_engine_gets_a_host_with_its_dependencies() -> None:
    assert targets(RESOURCES, ("api-1",)) == [STACK, "u::api-1", "u::secrets", "u::datacentre", "u::pki"]
    assert targets(RESOURCES, ()) == [STACK]
    with pytest.raises(LookupError, match="the stack has no api-9"):
        targets(RESOURCES, ("api-1", "api-9"))
