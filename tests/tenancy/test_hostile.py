"""Whatever one tenant writes into its namespace, all other namespaces are reconciled and hosts are counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.tenancy import Leavers
from controllers.tenancy.capacity.hosts import hosts_of
from controllers.tenancy.sync.workloads import BEFORE, started, stopped
from tests.tenancy.cluster_in_memory import Memory
from tests.tenancy.test_plan import SETTINGS, roster

STOPPING = SETTINGS.model_copy(update={"leavers": Leavers.STOP})
_TEXT = st.text(max_size=30)
_ODD = st.one_of(
    st.none(), st.integers(), _TEXT, st.lists(_TEXT, max_size=2), st.dictionaries(_TEXT, _TEXT, max_size=2)
)


def deployment(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "user-bo"},
        "spec": {"replicas": 2},
    } | more


@pytest.mark.parametrize("before", ["\u00b2", "9" * 5000, "x", "-1", "", "\u0663"])
def test_an_overwritten_number_of_replicas_does_not_block_the_sync(before: str) -> None:
    """bo left and is back, and had edited a stopped workload; cleo joins in the same sync."""
    memory = Memory()
    memory.sync(roster("ana bo"), STOPPING)
    memory.put(deployment())
    memory.sync(roster("ana"), STOPPING)
    memory.objects["Deployment", "user-bo", "d"]["metadata"]["annotations"] = {BEFORE: before}
    memory.sync(roster("ana bo cleo"), STOPPING)
    assert ("Namespace", "", "user-cleo") in memory.objects
    assert memory.subjects("user-bo") == ["bo"]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["spec", "status", "metadata.annotations", "metadata.ownerReferences"]), _ODD)
def test_a_workload_of_another_shape_affects_only_its_namespace(field: str, value: object) -> None:
    memory = Memory()
    memory.sync(roster("ana bo"), STOPPING)
    odd = deployment()
    if field.startswith("metadata."):
        odd["metadata"][field.removeprefix("metadata.")] = value
    else:
        odd[field] = value
    memory.put(odd)
    planned = memory.planned(roster("ana cleo"), STOPPING)
    assert {change.key for change in planned.changes} >= {("Namespace", "", "user-cleo")}


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.just(BEFORE), _TEXT))
def test_no_annotation_prevents_stopping_or_starting_a_workload(notes: dict[str, str]) -> None:
    thing = deployment(metadata={"name": "d", "namespace": "user-bo", "annotations": notes})
    stopped(thing)
    started(thing)


@settings(max_examples=50, deadline=None)
@given(_TEXT, _TEXT, st.sampled_from(["Exists", "Equal", "Lt", ""]), st.dictionaries(_TEXT, _TEXT, max_size=3))
def test_hosts_are_counted_with_any_tolerations(
    build: Any, key: str, value: str, operator: str, notes: dict[str, str]
) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "user-bo", "annotations": notes},
        "spec": {"nodeName": "worker-r1-1", "tolerations": [{"key": key, "value": value, "operator": operator}]},
    }
    space = {"metadata": {"name": "user-bo", "labels": {f"teams.menagerie.dev/{key}": value}}}
    nodes = [{"metadata": {"name": "worker-r1-1", "labels": {}}, "spec": {}, "status": {}}]
    hosts_of(build({}), nodes, [pod], [space])
