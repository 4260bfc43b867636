"""Which hosts are moved: properties over allocations and hosts, and examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cluster.allocations import BORROWED, TEAM_KEY, Allocation
from cluster.spec import Cluster
from cluster.tenancy import DirectorySource, Tenancy
from controllers.tenancy.capacity.guard import refusals
from controllers.tenancy.capacity.hosts import Pod, TeamHost, hosts_of, teams_of
from controllers.tenancy.capacity.plan import AllocationPlan, KnownTeams, MoveVerb, plan
from controllers.tenancy.capacity.run import patch, teams_with_namespace
from tests.tenancy.hosts import of_pools

KNOWN = KnownTeams({"a": "", "b": "", "c": ""})
SETTINGS = Tenancy(directory=DirectorySource(file="people.yaml"))


def allocations(*given: tuple[str, int]) -> tuple[Allocation, ...]:
    return tuple(Allocation(pool="p", team=team, hosts=hosts) for team, hosts in given)


def host(name: str, team: str = "", *pods: Pod, taint: str | None = None, ready: bool = True) -> TeamHost:
    return TeamHost(name, "p", team, team if taint is None else taint, ready, pods)


def of(team: str, number: int = 0) -> Pod:
    return Pod(f"team-{team}/work-{number}", frozenset({team}))


def planned(given: tuple[Allocation, ...], *hosts: TeamHost, known: KnownTeams = KNOWN) -> AllocationPlan:
    return plan(given, hosts, known)


def moves_of(planned_: AllocationPlan) -> list[tuple[str, str, str]]:
    return [(move.verb, move.host.name, move.after) for move in planned_.moves]


def after(planned_: AllocationPlan, hosts: tuple[TeamHost, ...]) -> tuple[TeamHost, ...]:
    """Return the hosts after the moves."""
    moves = {move.host.name: move for move in planned_.moves}
    return tuple(
        replace(host, label=moves[host.name].label, taint=moves[host.name].after) if host.name in moves else host
        for host in hosts
    )


NAMES = st.sampled_from(["", "a", "b", "c", "gone", "nobody"])
PODS = st.builds(
    Pod, st.uuids().map(lambda id: f"n/{id}"), st.frozensets(st.sampled_from(["a", "b", "c"])), st.booleans()
)
HOSTS = st.lists(
    st.builds(TeamHost, st.just(""), st.just("p"), NAMES, NAMES, st.booleans(), st.lists(PODS, max_size=2).map(tuple)),
    max_size=8,
).map(lambda hosts: tuple(replace(each, name=f"h{index}") for index, each in enumerate(hosts)))
ALLOCATIONS = st.dictionaries(st.sampled_from(["a", "b", "c", "nobody"]), st.integers(0, 5)).map(
    lambda counts: allocations(*counts.items())
)
FEW = hypothesis_settings(max_examples=60)


@FEW
@given(ALLOCATIONS, HOSTS)
def test_a_second_plan_changes_nothing(given_: tuple[Allocation, ...], hosts: tuple[TeamHost, ...]) -> None:
    then = after(plan(given_, hosts, KNOWN), hosts)
    assert plan(given_, then, KNOWN).changes == ()


@FEW
@given(ALLOCATIONS, HOSTS)
def test_each_team_gets_its_number_as_far_as_hosts_suffice(
    given_: tuple[Allocation, ...], hosts: tuple[TeamHost, ...]
) -> None:
    then = after(plan(given_, hosts, KNOWN), hosts)
    here = [each for each in given_ if each.team in KNOWN.teams]
    has = {each.team: sum(host.holder == each.team for host in then) for each in here}
    left = len(hosts) - sum(each.holder == "nobody" and any(one.team == "nobody" for one in given_) for each in then)
    assert all(has[each.team] <= each.hosts for each in here)
    assert sum(has.values()) == min(sum(each.hosts for each in here), left)
    assert not [host for host in then if host.holder == "gone"]


@FEW
@given(ALLOCATIONS, HOSTS)
def test_no_host_gets_a_new_label_while_pods_of_others_run_there(
    given_: tuple[Allocation, ...], hosts: tuple[TeamHost, ...]
) -> None:
    for move in plan(given_, hosts, KNOWN).moves:
        if move.label not in ("", move.host.label):
            assert move.host.in_the_way(move.label) == ()
        assert bool(move.waits) == (move.verb in (MoveVerb.CLOSE, MoveVerb.WAIT))


@FEW
@given(ALLOCATIONS, HOSTS)
def test_when_all_pods_have_ended_label_and_taint_agree_on_every_host(
    given_: tuple[Allocation, ...], hosts: tuple[TeamHost, ...]
) -> None:
    then = tuple(replace(host, pods=()) for host in after(plan(given_, hosts, KNOWN), hosts))
    then = after(plan(given_, then, KNOWN), then)
    fixed = {"nobody"}
    assert all(host.label == host.taint for host in then if host.holder not in fixed)


def test_idle_hosts_move_first_and_a_busy_one_is_closed_to_others() -> None:
    hosts = (host("h0", "", of("c")), host("h1"), host("h2", "", of("c"), of("c", 1)))
    assert moves_of(planned(allocations(("a", 1)), *hosts)) == [("give", "h1", "a")]
    plan_ = planned(allocations(("a", 2)), *hosts)
    assert moves_of(plan_) == [("close", "h0", "a"), ("give", "h1", "a")]
    (waiting,) = plan_.waiting
    assert (waiting.waits, waiting.label) == (("team-c/work-0",), "")
    assert waiting.reason == "a has an allocation of 2 hosts of p; pods of others still run there"


def test_a_closed_host_is_given_when_the_last_pod_of_others_has_ended() -> None:
    closed = host("h0", "b", of("b"), taint="a")
    assert moves_of(planned(allocations(("a", 1)), closed)) == [("wait", "h0", "a")]
    (move,) = planned(allocations(("a", 1)), replace(closed, pods=(of("a"),))).moves
    assert (move.verb, move.label, move.reason) == (
        MoveVerb.GIVE,
        "a",
        "it is moving to a, and is already closed to others",
    )


def test_a_team_gives_up_hosts_that_it_uses_least_or_has_only_partly() -> None:
    hosts = (host("h0", "a", of("a")), host("h1", "a"), host("h2", "a", of("a"), of("a", 1)), host("h3", "", taint="a"))
    assert moves_of(planned(allocations(("a", 3)), *hosts)) == [("open", "h3", "")]
    assert moves_of(planned(allocations(("a", 1)), *hosts)) == [
        ("open", "h0", ""),
        ("open", "h1", ""),
        ("open", "h3", ""),
    ]
    plan_ = planned(allocations(("a", 3), ("b", 1)), *hosts)
    assert moves_of(plan_) == [("give", "h3", "b")]


def test_borrowing_pods_do_not_delay_moves() -> None:
    borrowed = Pod("user-x/p", anywhere=True, borrowed=True)
    assert moves_of(planned(allocations(("b", 1)), host("h0", "a", borrowed))) == [("give", "h0", "b")]


def test_a_ready_host_is_given_before_one_that_is_not() -> None:
    hosts = (host("h0", ready=False), host("h1"), host("h2", "", of("c")))
    assert moves_of(planned(allocations(("a", 1)), *hosts)) == [("give", "h1", "a")]
    assert moves_of(planned(allocations(("a", 2)), *hosts)) == [("give", "h0", "a"), ("give", "h1", "a")]


@pytest.mark.parametrize(("label", "taint", "reason"), [
    ("a", "", "it belongs to a, but its taint names no team"), ("a", "b", "it belongs to a, but its taint names b"),
    ("", "a", "it is moving to a, and is already closed to others"),
])  # fmt: skip
def test_manual_changes_are_corrected(label: str, taint: str, reason: str) -> None:
    (move,) = planned(allocations(("a", 1)), host("h0", label, of("c"), of("a"), taint=taint) if label else host("h0", "", taint=taint)).moves  # fmt: skip
    assert (move.verb, move.label, move.after, move.reason) == (MoveVerb.GIVE, "a", "a", reason)


def test_a_team_without_a_namespace_keeps_its_hosts_and_gets_no_more() -> None:
    hosts = (host("h0", "ghost"), host("h1"), host("h2", "cold"))
    frozen = KnownTeams({"a": "", "cold": "2026-11-01"})
    plan_ = planned(allocations(("ghost", 2), ("cold", 0), ("a", 2)), *hosts, known=frozen)
    assert moves_of(plan_) == [("give", "h1", "a")]
    assert plan_.conflicts == (
        "ghost has no namespace, so nobody could use its hosts; tenancy sync creates one for each team of the directory",
        "cold has been frozen since 2026-11-01, so nobody could use its hosts; remove its allocation",
    )
    assert plan_.notices == (
        "a has 1 of its 2 hosts of p, which has 3 hosts now; it gets hosts that join in the next run",
    )


def test_a_large_loss_at_once_is_refused() -> None:
    hosts = tuple(host(f"h{number}", "a") for number in range(4))
    plan_ = planned((), *hosts)
    (reason,) = refusals(plan_, hosts, SETTINGS)
    assert reason.startswith("4 of the teams' 4 hosts would be taken from them")
    assert reason.endswith("--accept-loss")
    assert refusals(plan_, hosts, SETTINGS, accept_loss=True) == ()
    assert refusals(planned(allocations(("a", 3)), *hosts), hosts, SETTINGS) == ()
    assert refusals(planned(allocations(("a", 2), ("b", 2)), *hosts), hosts, SETTINGS) != ()
    assert refusals(planned(allocations(("a", 1)), host("h0")), (host("h0"),), SETTINGS) == ()


def raw(namespace: str, name: str, node: str, *tolerations: dict[str, str], owner: str = "", phase: str = "Running", **spec: str) -> dict[str, object]:  # fmt: skip
    owners = [{"kind": owner, "controller": True}] if owner else []
    metadata = {"namespace": namespace, "name": name, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"nodeName": node, "tolerations": list(tolerations), **spec}, "status": {"phase": phase}}  # fmt: skip


def test_hosts_are_read_with_their_pool_and_relevant_pods(build: Callable[..., Cluster]) -> None:
    cluster = of_pools(build, {"workers": 2})
    own = {"key": TEAM_KEY, "value": "a", "effect": "NoSchedule"}
    no_execute = {"key": TEAM_KEY, "value": "x", "effect": "NoExecute"}
    node = {
        "metadata": {"name": "workers-0", "labels": {TEAM_KEY: "a"}},
        "spec": {"taints": [no_execute, own]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    stray = {"metadata": {"name": "foreign", "labels": {TEAM_KEY: "a"}}, "spec": {}}
    pods = [
        raw("team-a", "one", "workers-0", {"key": TEAM_KEY, "operator": "Equal", "value": "a"}),
        raw("team-a", "older", "workers-0"),
        raw("team-b", "any", "workers-0", {"key": TEAM_KEY, "operator": "Exists"}, priorityClassName=BORROWED),
        raw("team-b", "all", "workers-0", {"operator": "Exists"}),
        raw("team-b", "none", "workers-0", {"operator": "Exists", "effect": "NoExecute"}),
        raw("team-b", "ended", "workers-0", phase="Succeeded"),
        raw("team-b", "daemon", "workers-0", owner="DaemonSet"),
        raw("kube-system", "dns", "workers-0"),
        raw("team-b", "elsewhere", "workers-1"),
    ]
    labels = {"kube-system": {}, "team-a": {"menagerie.dev/team": "a"}, "team-b": {}}
    names = [{"metadata": {"name": name, "labels": own}} for name, own in labels.items()]
    (host_,), strays = hosts_of(cluster, [node, stray], pods, names)
    assert (host_.pool, host_.label, host_.taint, host_.ready, strays) == ("workers", "a", "a", True, ("foreign",))
    assert host_.pods == (
        Pod("team-a/one", frozenset({"a"})), Pod("team-a/older", frozenset({"a"})), Pod("team-b/any", anywhere=True, borrowed=True),
        Pod("team-b/all", anywhere=True), Pod("team-b/none"),
    )  # fmt: skip
    assert host_.in_the_way("a") == ("team-b/none",)


def test_a_patch_has_its_own_label_and_taint_and_nothing_else() -> None:
    others = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}, {"key": TEAM_KEY, "value": "a", "effect": "NoExecute"}]
    own = {"key": TEAM_KEY, "value": "a", "effect": "NoSchedule"}
    node = {"metadata": {"name": "h", "resourceVersion": "7"}, "spec": {"taints": [others[0], own, others[1]], "unschedulable": True}}  # fmt: skip
    assert patch(node, label="b", taint="b") == {
        "metadata": {"resourceVersion": "7", "labels": {TEAM_KEY: "b"}},
        "spec": {"taints": [*others, {**own, "value": "b"}]},
    }
    assert patch(node, label="b", taint="a") == {"metadata": {"resourceVersion": "7", "labels": {TEAM_KEY: "b"}}}
    alone = {"metadata": {"resourceVersion": "7"}, "spec": {"taints": [own]}}
    assert patch(alone, label="", taint="") == {
        "metadata": {"resourceVersion": "7", "labels": {TEAM_KEY: None}}, "spec": {"taints": None},
    }  # fmt: skip


def test_a_namespaces_teams_are_what_sync_wrote() -> None:
    def labelled(**labels: str) -> dict[str, object]:
        return {"metadata": {"name": "n", "labels": {key.replace("__", "/"): value for key, value in labels.items()}}}

    assert teams_of(labelled(**{"menagerie.dev/team": "a"})) == {"a"}
    assert teams_of(labelled(**{"teams.menagerie.dev/a": "true", "teams.menagerie.dev/b": "true"})) == {"a", "b"}
    assert teams_of({"metadata": {"name": "n"}}) == frozenset()


def test_known_teams_are_those_of_our_namespaces() -> None:
    def space(name: str, **more: object) -> dict[str, object]:
        labels = {"app.kubernetes.io/managed-by": "menagerie-tenancy", "menagerie.dev/tenant": "team"}
        return {"kind": "Namespace", "metadata": {"name": f"team-{name}", "labels": labels, "annotations": {"menagerie.dev/name": name}, **more}}  # fmt: skip

    foreign = {"kind": "Namespace", "metadata": {"name": "team-x", "labels": {"menagerie.dev/team": "x"}}}
    ending = space("c", deletionTimestamp="2026-11-01T00:00:00Z")
    assert teams_with_namespace([space("A.B"), ending, foreign], SETTINGS).teams == {"A.B": ""}
