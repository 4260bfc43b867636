"""Whatever one tenant writes into pods, the pass goes on for all others."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.autoscaler.asking import asked
from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Act
from controllers.autoscaler.keys import ALL, CLOUD, KEEP, PREFIX, SAFE_TO_EVICT
from controllers.autoscaler.look import _readable, _resident
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.pods import is_waiting, waiting
from controllers.autoscaler.seen import Waiting
from controllers.planner import Operator, Requirement
from tests.scheduling.autoscaler.support import CHOICES, CPU_POOL, LIMITS, node, pod_document, setting, world

GOOD = "default/good"
_TEXT = st.text(max_size=60)
_VALUES = st.one_of(
    _TEXT, st.sampled_from(["NaN", "sNaN", "1e999999", "-1", "9" * 400, ",".join("abc" * 40), "\x00\u202e"])
)
_NOTES = st.dictionaries(
    st.one_of(st.sampled_from([*ALL, KEEP, SAFE_TO_EVICT]), _TEXT.map(lambda text: PREFIX + text)), _VALUES
)


def affinity(operator: str, values: list[str], key: str = "number") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": rule}


def decided(*hostile: dict[str, Any]) -> None:
    """A pass in which a good pod waits beside hostile ones, and a host is bought for it."""
    odd: list[str] = []
    documents = [*hostile, pod_document("good", cpus=4)]
    waits = _readable(documents, lambda pod: waiting(pod, CHOICES), odd)
    there = node("n1", CPU_POOL, labels={"number": "7"}, cordoned=True)
    made = decide(world([there], waits), Memory(), setting((CPU_POOL,)).settings, LIMITS)
    assert made.refused == ""
    assert made.verdicts[GOOD].fate == "new"
    assert [each for each in made.decisions if each.act is Act.GROW]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["x", "", "1.5", "--1", "\u00b2", "9" * 5000])
def test_a_number_that_is_none_in_an_affinity_is_met_by_no_host_and_stops_nobody(operator: str, value: str) -> None:
    """The API takes any text there, and the scheduler says Unschedulable."""
    assert Requirement("number", Operator(operator), (value,)).met({"number": "7"}) is False
    decided(pod_document("bad", affinity=affinity(operator, [value])))


@pytest.mark.parametrize("cpu", ["9223372036854775807", "1n", "1e18", "4611686018427387904Ki"])
def test_the_largest_and_the_smallest_amounts_stop_nobody(cpu: str) -> None:
    requests = {"cpu": cpu, "memory": cpu, "example.org/x": cpu}
    decided(pod_document("bad", containers=[{"resources": {"requests": requests}}]))


@settings(max_examples=40, deadline=None)
@given(_NOTES)
def test_whatever_annotations_say_the_pass_goes_on(notes: dict[str, str]) -> None:
    decided(pod_document("bad", annotations=notes))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(
        ["affinity", "tolerations", "nodeSelector", "containers", "overhead", "schedulingGroup", "priority"]
    ),
    st.recursive(
        st.one_of(st.none(), st.integers(), _TEXT),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    ),
)
def test_a_field_of_another_shape_leaves_out_one_pod_alone(field: str, value: object) -> None:
    """As a newer release of Kubernetes may have it."""
    odd: list[str] = []
    bad, good = pod_document("bad", **{field: value}), pod_document("good")
    found: list[Waiting] = _readable([bad, good], lambda pod: waiting(pod, CHOICES), odd)
    assert GOOD in {each.name for each in found}
    assert len(found) + len(odd) == 2
    assert all(text.isprintable() for text in odd)


def test_a_resident_that_cannot_be_read_keeps_its_host() -> None:
    found = _resident(pod_document("bad", containers=[{"resources": {"requests": {"cpu": "four"}}}]), lambda pod: False)
    assert found.keeps.startswith("can't be read")


def test_annotations_as_large_as_the_api_takes_cost_a_pass_next_to_nothing() -> None:
    """256 KiB of them: looked up one by one they took 20 seconds of every pass."""
    notes = {CLOUD: "awz," * 40_000} | {f"{PREFIX}{number}": "x" for number in range(3000)}
    began = time.process_time()
    found = asked(notes, CHOICES)
    assert time.process_time() - began < 1
    assert len(found.complaints) < 20
    assert is_waiting(pod_document("x")) is False
