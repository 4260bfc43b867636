"""One field of a valid spec changed at a time: a problem or a cluster that every room can use."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.check import check as check_cluster
from cluster.load import Loaded, load_cluster
from cluster.problems import Problem
from cluster.spec import Cluster, ClusterSpec, Host
from etcd.members import members
from network.addresses import ROLES, plan
from network.flannel import net_conf
from network.mtu import pod_mtu
from network.neighbours import needed, thresholds

Check = Callable[[Any], tuple[list[Loaded], list[Problem]]]
Place = tuple[str | int, ...]

PATH = Path(__file__).parents[1] / "specs" / "valid-onprem.yaml"
SPEC = yaml.safe_load(PATH.read_text())
HOSTS = load_cluster(PATH).hosts["gpu"]
VALUES: list[Any] = [
    None, True, 0, -1, 1, 3, 8, 65536, 10**30, 1.5, float("inf"), float("nan"), "", "x", "1", "true", "ä{}%",
    "2GiB", "64GiB", "10s",
    "10.8.0.0/16", "10.8.0.1/16", "0.0.0.0/0", "1.2.3.4/32", "10.0.0.1", "::1", "host-gw", "main", "lab", "aws",
    "1.35.0",
    [], [1], [[]], ["a", "a"], {}, {"a": 1}, {"A B": {}},
]  # fmt: skip


def places(value: Any, prefix: Place = ()) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*prefix, key)
        yield from places(inner, (*prefix, key))


def put(value: Any, holder: Any, key: Any) -> None:
    holder[key] = value


def changed(place: Place, change: Callable[[Any, Any], None]) -> Any:
    data = copy.deepcopy(SPEC)
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    change(holder, place[-1])
    return data


def usable(cluster: Cluster) -> None:
    """None of the rooms that read a checked cluster refuses it."""
    where = plan(cluster)
    assert pod_mtu(cluster) >= 576
    assert thresholds(cluster).gc_thresh3 > 0
    assert net_conf(cluster)["Network"] == str(cluster.spec.network.pods)
    assert all(members(cluster, role, where) for role in ROLES)


def judge(loaded: list[Loaded], problems: list[Problem]) -> None:
    errors = [problem for problem in problems if problem.is_error]
    assert bool(loaded) is not bool(errors)
    for problem in problems:
        assert str(problem)
        assert problem.to_json()["file"]
        assert problem.line >= 1
    for one in loaded:
        usable(one.cluster)


def test_any_value_for_any_field_gives_problems_or_a_usable_cluster(check: Check) -> None:
    for place in places(SPEC):
        for value in VALUES:
            judge(*check(changed(place, partial(put, value))))


def test_any_field_left_out_gives_problems_or_a_usable_cluster(check: Check) -> None:
    for place in places(SPEC):
        judge(*check(changed(place, lambda holder, key: holder.__delitem__(key))))


def test_any_key_misspelt_gives_a_problem(check: Check) -> None:
    for place in places(SPEC):
        named = place[-2] in ("sites", "racks", "pools", "labels") if len(place) > 1 else False
        if isinstance(place[-1], str) and not named:
            data = changed(place, lambda holder, key: holder.__setitem__(f"{key}x", holder.pop(key)))
            _, problems = check(data)
            assert "CFG-001" in {problem.code for problem in problems}, place


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"), max_size=20)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.sampled_from(list(places(SPEC))), value=trees)
def test_any_tree_for_any_field_gives_problems_or_a_usable_cluster(check: Check, place: Place, value: Any) -> None:
    judge(*check(changed(place, partial(put, value))))


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, Any]:
    """A spec whose numbers are near the limits of what has room."""
    data: dict[str, Any] = copy.deepcopy(SPEC)
    data["control_plane"]["api_servers"] = draw(st.integers(1, 110))
    data["control_plane"]["zones"] = list(range(1, draw(st.integers(1, 5)) + 1))
    for role in ROLES:
        data["etcd"][role]["members"] = draw(st.sampled_from([1, 3, 5, 7]))
    data["etcd"]["events"]["hosts"] = draw(st.sampled_from(["dedicated", "main"]))
    data["network"]["nodes"] = f"10.32.0.0/{draw(st.integers(16, 30))}"
    data["network"]["services"] = f"10.48.0.0/{draw(st.integers(12, 31))}"
    data["network"]["link_mtu"] = draw(st.integers(1280, 9216))
    data["network"]["flannel"] = {
        "mtu": draw(st.none() | st.integers(576, 9216)),
        "backend": draw(st.sampled_from(["vxlan", "host-gw"])),
    }
    data["sites"]["sjc1"]["uplink_mtu"] = draw(st.integers(576, 2000))
    keys = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
    data["neighbours"] = {key: draw(st.none() | st.sampled_from([1, 100, 200, 80000, 90000])) for key in keys}
    if draw(st.booleans()):
        data["pools"]["cpu"] = {
            "machine": "Standard_D64_v5",
            "max": draw(st.sampled_from([0, 1, 4000, 99_900, 200_000])),
        }
    return data


def refuses(room: Callable[[Cluster], object], cluster: Cluster) -> bool:
    try:
        room(cluster)
    except ValueError:
        return True
    return False


@settings(max_examples=300, deadline=None)
@given(data=sizes())
def test_the_rules_and_the_rooms_refuse_the_same(data: dict[str, Any]) -> None:
    cluster = Cluster(spec=ClusterSpec.model_validate(data), hosts={"gpu": HOSTS})
    codes = {problem.code for problem in check_cluster(cluster) if problem.is_error}
    assert refuses(pod_mtu, cluster) == ("NET-009" in codes)
    assert refuses(plan, cluster) == bool(codes & {"NET-010", "NET-011", "ETC-003"})
    # The rules want all thresholds given or none, which the room doesn't.
    assert not refuses(thresholds, cluster) or codes & {"ARP-001", "ARP-002"}


@given(pods=st.integers(1, 200), hosts=st.integers(1, 250), cloud=st.integers(0, 300))
def test_the_rule_and_the_room_need_as_many_neighbours(pods: int, hosts: int, cloud: int) -> None:
    data = copy.deepcopy(SPEC)
    data["network"]["max_pods"] = pods
    data["pools"]["cpu"] = {"machine": "Standard_D64_v5", "max": cloud}
    machines = tuple(Host(name=f"gpu-{n}", rack="r1", address=IPv4Address(f"10.8.0.{n}")) for n in range(1, hosts + 1))
    need = needed(Cluster(spec=ClusterSpec.model_validate(data), hosts={"gpu": machines}))
    for third, small in ((need - 1, True), (need, False)):
        data["neighbours"] = {"gc_thresh3": third}
        problems = check_cluster(Cluster(spec=ClusterSpec.model_validate(data), hosts={"gpu": machines}))
        assert ("ARP-001" in {problem.code for problem in problems}) is small
