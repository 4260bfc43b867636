"""The controls as data: complete, unambiguous, and met by what is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from cluster.audit.controls import SECTIONS, controls, section
from cluster.audit.decide import ATTEMPTS, DECISIONS, decided
from cluster.audit.evidence import API_LISTS, Evidence
from cluster.audit.model import Control, Requirement, Status
from cluster.tls import CIPHER_SUITES

BENCHMARK = {
    "1.1": 21, "1.2": 30, "1.3": 7, "1.4": 2, "2": 7, "3.1": 3, "3.2": 2, "4.1": 10, "4.2": 14, "4.3": 1,
    "5.1": 13, "5.2": 12, "5.3": 2, "5.4": 2, "5.5": 1, "5.6": 4,
}  # fmt: skip
"""Section of the CIS Kubernetes Benchmark 1.12 -> number of its controls."""
NOT_MET = {"1.2.11", "3.1.1", "5.3.1", "5.5.1"}


def test_every_control_of_the_benchmark_exists_once_and_in_order() -> None:
    expected = [f"{part}.{number}" for part, count in BENCHMARK.items() for number in range(1, count + 1)]
    ids = [control.id for control in controls()]
    own = [each for each in ids if each.startswith("M.")]
    assert ids == [*expected, *own]
    # Each once and in order. Numbers of future controls may be missing.
    numbers = [int(each.removeprefix("M.")) for each in own]
    assert numbers == sorted(set(numbers))


def test_every_control_is_in_a_section_and_what_decides_it_exists() -> None:
    assert {section(control) for control in controls()} == set(SECTIONS)
    named = {control.by for control in controls() if control.by}
    assert named == {*DECISIONS, ATTEMPTS}


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.id)
def test_hosts_as_rendered_with_attempts_made_up_meet_every_control_except_documented_exceptions(
    control: Control, good: Evidence
) -> None:
    """The fixture `good` says what is rendered and what is made up."""
    result = decided(control, good)
    if control.id in NOT_MET:
        assert (result.status, bool(control.exception)) == (Status.EXCEPTION, True)
    else:
        assert result.status is (Status.MANUAL if control.id == "5.4.2" else Status.PASS), result.observed


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.id)
def test_no_control_passes_without_evidence(control: Control) -> None:
    assert decided(control, Evidence()).status is Status.NOT_SEEN


class Recorder(dict[str, Any]):
    """Lists of the API that record which of them were read."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        super().__init__(lists)
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.names.append(name)
        return super().get(name, default)


def test_a_missing_list_of_the_api_is_never_a_pass_and_says_why(good: Evidence) -> None:
    read = set()
    wrong = []
    for control in (each for each in controls() if each.by):
        recorder = Recorder(good.objects)
        decided(control, replace(good, objects=recorder))
        read |= set(recorder.names)
        for name in recorder.names:
            result = decided(control, replace(good, objects={**good.objects, name: "no answer"}))
            if (result.status, result.observed) != (Status.NOT_SEEN, "API: no answer"):
                wrong.append((control.id, name, result))
    assert wrong == []
    assert len(read & set(API_LISTS)) > len(API_LISTS) / 2


@pytest.mark.parametrize(
    ("test", "good", "bad"),
    [
        (Requirement(equals=False), [False, "false"], [True, "true", None]),
        (Requirement(equals=0, or_unset=True), [0, "0", None], [10255]),
        (Requirement(other_than="0s"), ["4h0m0s", None], ["0s"]),
        (Requirement(set=True), ["", "x"], [None]),
        (Requirement(set=False), [None], ["x"]),
        (Requirement(has="RBAC"), ["Node,RBAC", ["RBAC"]], ["Node", "RBACX", None]),
        (Requirement(lacks="AlwaysAllow"), ["Node,RBAC", None], ["Node,AlwaysAllow"]),
        (Requirement(at_least=30), ["30", 365], ["29", "-1", "many", None]),
        (
            Requirement(within="strong-ciphers"),
            [CIPHER_SUITES[0], list(CIPHER_SUITES)],
            ["TLS_RSA_WITH_RC4_128_SHA", [], None],
        ),
    ],
    ids=lambda value: value.phrase() if isinstance(value, Requirement) else "",
)
def test_a_setting_is_compared_as_the_control_says(test: Requirement, good: list[object], bad: list[object]) -> None:
    assert [value for value in good if not test.holds(value)] == []
    assert [value for value in bad if test.holds(value)] == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"id": "x", "title": "x"}, "exactly one of flags, files, kubelet and by"),
        ({"id": "x", "title": "x", "by": "attempts"}, "must say what the function does"),
        ({"id": "x", "title": "x", "kubelet": {"a": {}}}, "exactly one requirement"),
        ({"id": "x", "title": "x", "kubelet": {"a": {"set": True, "has": "b"}}}, "exactly one requirement"),
        ({"id": "x", "title": "x", "by": "attempts", "how": "so", "why": "?"}, "Extra inputs"),
    ],
)
def test_a_control_with_too_few_or_too_many_settings_is_refused(data: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Control.model_validate(data)
