"""Change one field of a valid spec at a time: the result is a problem or a cluster that every package can use."""

import copy
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cluster import versions
from cluster.artefacts import ArtefactSource, catalogue
from cluster.check import check as check_cluster
from cluster.load import Loaded, load_cluster
from cluster.neighbours import needed
from cluster.problems import Problem
from cluster.spec import Cluster, ClusterSpec
from components.control_plane import host_config
from etcd.render import host_configs
from network.addresses import ROLES, plan
from network.flannel import net_conf
from network.neighbours import thresholds
from network.render import worker_files

Check = Callable[..., tuple[list[Loaded], list[Problem]]]
Place = tuple[str | int, ...]

PATH = Path(__file__).parents[1] / "specs" / "valid-onprem.yaml"
# With every key written out, including those that have their defaults in the file.
SPEC = ClusterSpec.model_validate(yaml.safe_load(PATH.read_text())).model_dump(mode="json")
HOSTS = load_cluster(PATH).hosts["gpu"]
VALUES: list[Any] = [
    None, True, 0, -1, 1, 3, 8, 65536, 10**30, 1.5, float("inf"), float("nan"), "", "x", "1", "true", "ä{}%",
    "2GiB", "64GiB", "10s",
    "10.8.0.0/16", "10.8.0.1/16", "0.0.0.0/0", "1.2.3.4/32", "10.0.0.1", "::1", "host-gw", "main", "lab", "aws",
    "1.35.0", "1.36.3", "/usr", "/data/etcd/", "/my disk/etcd", "/data/etcd",
    [], [1], [[]], ["a", "a"], {}, {"a": 1}, {"A B": {}},
]  # fmt: skip

# A flag in a unit: one ASCII word, as systemd would split at a space.
FLAG = re.compile(r'    ("?)--[a-z-]+=[!-~]+\1( \\)?')


def places(value: Any, prefix: Place = ()) -> Iterator[Place]:
    """Yield all paths. For lists only the first and last entry: the others are similar, and default lists are long."""
    ends = {0: value[0], len(value) - 1: value[-1]} if isinstance(value, list) and value else {}
    items = value.items() if isinstance(value, dict) else ends.items()
    for key, inner in items:
        yield (*prefix, key)
        yield from places(inner, (*prefix, key))


def put(value: Any, holder: Any, key: Any) -> None:
    holder[key] = value


def changed(place: Place, change: Callable[[Any, Any], None]) -> Any:
    """Return the spec with a change. Only containers of the changed value are copied."""
    data = holder = copy.copy(SPEC)
    for key in place[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    change(holder, place[-1])
    return data


def distinct(place: Place) -> Iterator[Any]:
    """Yield the spec with each value that the model accepts there, and one of each type per error message."""
    kinds: set[tuple[type, tuple[str, ...]]] = set()
    for value in VALUES:
        data = changed(place, partial(put, value))
        try:
            ClusterSpec.model_validate(data)
        except ValidationError as refused:
            errors = [f"{error['loc']}: {error['msg']}" for error in refused.errors()]
            words = (type(value), tuple(line.replace(repr(value), "").replace(str(value), "") for line in errors))
            if words in kinds:
                continue
            kinds.add(words)
        yield data


def usable(cluster: Cluster) -> None:
    """Assert that no package that reads a checked cluster refuses it."""
    where = plan(cluster)
    hosts = where.hosts()
    served = catalogue(versions.KUBERNETES if cluster.is_lab else cluster.spec.kubernetes.version)
    source = ArtefactSource(None, {artefact.source: "0" * 64 for artefact in served.values()})
    assert len({host.address for host in hosts}) == len(hosts)
    assert all(host.address in cluster.spec.network.nodes for host in hosts)
    configs = host_configs(cluster, where, source)
    assert set(configs) | {each.name for each in where.api_servers} == {host.name for host in hosts}
    for config in (next(iter(configs.values())), host_config(cluster, where, source)):
        flags = [line for file in config.files for line in file.text.splitlines() if line.startswith("    --")]
        assert [flag for flag in flags if not FLAG.fullmatch(flag)] == []
    assert worker_files(cluster)
    assert net_conf(cluster)["Backend"].get("MTU", 1280) >= 576
    chosen = thresholds(cluster)
    assert chosen.gc_thresh1 <= chosen.gc_thresh2 <= chosen.gc_thresh3 >= needed(cluster)


def judge(loaded: list[Loaded], problems: list[Problem]) -> None:
    errors = [problem for problem in problems if problem.is_error]
    assert bool(loaded) is not bool(errors)
    for problem in problems:
        assert str(problem)
        assert problem.to_json()["file"]
        assert problem.line >= 1
    for one in loaded:
        usable(one.cluster)


@pytest.mark.parametrize("part", sorted({str(place[1] if len(place) > 1 else "") for place in places(SPEC)}))
def test_any_value_for_any_field_gives_problems_or_a_usable_cluster(check: Check, part: str) -> None:
    for place in places(SPEC):
        if str(place[1] if len(place) > 1 else "") != part:
            continue
        for data in distinct(place):
            judge(*check(data, SPEC))


def test_any_field_left_out_gives_problems_or_a_usable_cluster(check: Check) -> None:
    for place in places(SPEC):
        judge(*check(changed(place, lambda holder, key: holder.__delitem__(key)), SPEC))


def test_any_misspelt_key_gives_a_problem(check: Check) -> None:
    for place in places(SPEC):
        named = place[-2] in ("sites", "racks", "pools", "labels") if len(place) > 1 else False
        if isinstance(place[-1], str) and not named:
            data = changed(place, lambda holder, key: holder.__setitem__(f"{key}x", holder.pop(key)))
            _, problems = check(data, SPEC)
            assert "CFG-001" in {problem.code for problem in problems}, place


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"), max_size=20)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.sampled_from(list(places(SPEC))), value=trees)
def test_any_tree_for_any_field_gives_problems_or_a_usable_cluster(check: Check, place: Place, value: Any) -> None:
    judge(*check(changed(place, partial(put, value)), SPEC))


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, Any]:
    """A spec with numbers near the limits of the available room."""
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


@settings(max_examples=300, deadline=None)
@given(data=sizes())
def test_sizes_near_their_limits_give_problems_or_a_usable_cluster(data: dict[str, Any]) -> None:
    cluster = Cluster(spec=ClusterSpec.model_validate(data), hosts={"gpu": HOSTS})
    if not any(problem.is_error for problem in check_cluster(cluster)):
        usable(cluster)
