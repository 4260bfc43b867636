"""Whatever one tenant writes into pods, the pass works for all others."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Act
from controllers.autoscaler.keys import ALL, CLOUD, KEEP, PREFIX, SAFE_TO_EVICT
from controllers.autoscaler.look import _readable, _resident
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.pod_requests import pod_request
from controllers.autoscaler.pods import is_waiting, waiting
from controllers.autoscaler.world import Waiting
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


def check_pass(*hostile: dict[str, Any]) -> None:
    """Run a pass in which a good pod waits among hostile ones, and check that a host is ordered for it."""
    notices: list[str] = []
    documents = [*hostile, pod_document("good", cpus=4)]
    waits = _readable(documents, lambda pod: waiting(pod, CHOICES), notices)
    there = node("n1", CPU_POOL, labels={"number": "7"}, cordoned=True)
    result = decide(world([there], waits), Memory(), setting((CPU_POOL,)).settings, LIMITS)
    assert result.refused == ""
    assert result.verdicts[GOOD].fate == "new"
    assert [each for each in result.decisions if each.act is Act.GROW]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["x", "", "1.5", "--1", "\u00b2", "9" * 5000])
def test_an_invalid_number_in_an_affinity_matches_no_host_and_blocks_nobody(operator: str, value: str) -> None:
    """The API accepts any text there, and the scheduler reports Unschedulable."""
    assert Requirement("number", Operator(operator), (value,)).met({"number": "7"}) is False
    check_pass(pod_document("bad", affinity=affinity(operator, [value])))


@pytest.mark.parametrize("cpu", ["9223372036854775807", "1n", "1e18", "4611686018427387904Ki"])
def test_the_largest_and_the_smallest_amounts_block_nobody(cpu: str) -> None:
    requests = {"cpu": cpu, "memory": cpu, "example.org/x": cpu}
    check_pass(pod_document("bad", containers=[{"resources": {"requests": requests}}]))


@settings(max_examples=40, deadline=None)
@given(_NOTES)
def test_a_pass_works_with_any_annotations(notes: dict[str, str]) -> None:
    check_pass(pod_document("bad", annotations=notes))


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
def test_a_field_of_another_shape_affects_only_its_pod(field: str, value: object) -> None:
    """A newer release of Kubernetes may have such a field."""
    notices: list[str] = []
    bad, good = pod_document("bad", **{field: value}), pod_document("good")
    readable: list[Waiting] = _readable([bad, good], lambda pod: waiting(pod, CHOICES), notices)
    assert GOOD in {each.name for each in readable}
    assert len(readable) + len(notices) == 2
    assert all(text.isprintable() for text in notices)


def test_an_unreadable_resident_keeps_its_host() -> None:
    unreadable = _resident(
        pod_document("bad", containers=[{"resources": {"requests": {"cpu": "four"}}}]), lambda pod: False
    )
    assert unreadable.keeps.startswith("can't be read")


def test_the_largest_annotations_that_the_api_accepts_do_not_slow_a_pass_down() -> None:
    """256 KiB of annotations, looked up one by one, used to take 20 seconds of every pass."""
    notes = {CLOUD: "awz," * 40_000} | {f"{PREFIX}{number}": "x" for number in range(3000)}
    start_s = time.process_time()
    request = pod_request(notes, CHOICES)
    assert time.process_time() - start_s < 1
    assert len(request.complaints) < 20
    assert is_waiting(pod_document("x")) is False
