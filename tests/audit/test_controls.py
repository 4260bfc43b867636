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
from cluster.audit.model import Control, Status, Wanted
from cluster.tls import CIPHER_SUITES

BENCHMARK = {
    "1.1": 21, "1.2": 30, "1.3": 7, "1.4": 2, "2": 7, "3.1": 3, "3.2": 2, "4.1": 10, "4.2": 14, "4.3": 1,
    "5.1": 13, "5.2": 12, "5.3": 2, "5.4": 2, "5.5": 1, "5.6": 4,
}  # fmt: skip
"""Section -> controls in it, of the CIS Kubernetes Benchmark 1.12."""
NOT_MET = {"1.2.11", "3.1.1", "5.3.1", "5.5.1"}


def test_every_control_of_the_benchmark_is_there_once_and_in_order() -> None:
    wanted = [f"{part}.{number}" for part, count in BENCHMARK.items() for number in range(1, count + 1)]
    ids = [control.id for control in controls()]
    own = [each for each in ids if each.startswith("M.")]
    assert ids == [*wanted, *own]
    # Each once and in order; numbers of those that are still to come may be missing.
    numbers = [int(each.removeprefix("M.")) for each in own]
    assert numbers == sorted(set(numbers))


def test_every_control_is_in_a_section_and_what_decides_it_exists() -> None:
    assert {section(control) for control in controls()} == set(SECTIONS)
    named = {control.by for control in controls() if control.by}
    assert named == {*DECISIONS, ATTEMPTS}


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.id)
def test_what_is_rendered_beside_what_hosts_are_taken_to_add_meets_every_control_but_for_exceptions_with_a_reason(
    control: Control, good: Evidence
) -> None:
    """`good` says which is which."""
    result = decided(control, good)
    if control.id in NOT_MET:
        assert (result.status, bool(control.exception)) == (Status.EXCEPTION, True)
    else:
        assert result.status is (Status.MANUAL if control.id == "5.4.2" else Status.PASS), result.seen


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.id)
def test_nothing_passes_of_which_nothing_was_seen(control: Control) -> None:
    assert decided(control, Evidence()).status is Status.NOT_SEEN


class Heard(dict[str, Any]):
    """Lists of the API, and which of them were looked at."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        super().__init__(lists)
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.names.append(name)
        return super().get(name, default)


def test_a_list_of_the_api_that_was_not_seen_is_never_a_pass_and_says_why(good: Evidence) -> None:
    looked_at = set()
    wrong = []
    for control in (each for each in controls() if each.by):
        heard = Heard(good.objects)
        decided(control, replace(good, objects=heard))
        looked_at |= set(heard.names)
        for name in heard.names:
            result = decided(control, replace(good, objects={**good.objects, name: "no answer"}))
            if (result.status, result.seen) != (Status.NOT_SEEN, "API: no answer"):
                wrong.append((control.id, name, result))
    assert wrong == []
    assert len(looked_at & set(API_LISTS)) > len(API_LISTS) / 2


@pytest.mark.parametrize(
    ("test", "good", "bad"),
    [
        (Wanted(equals=False), [False, "false"], [True, "true", None]),
        (Wanted(equals=0, or_unset=True), [0, "0", None], [10255]),
        (Wanted(other_than="0s"), ["4h0m0s", None], ["0s"]),
        (Wanted(set=True), ["", "x"], [None]),
        (Wanted(set=False), [None], ["x"]),
        (Wanted(has="RBAC"), ["Node,RBAC", ["RBAC"]], ["Node", "RBACX", None]),
        (Wanted(lacks="AlwaysAllow"), ["Node,RBAC", None], ["Node,AlwaysAllow"]),
        (Wanted(at_least=30), ["30", 365], ["29", "-1", "many", None]),
        (
            Wanted(within="strong-ciphers"),
            [CIPHER_SUITES[0], list(CIPHER_SUITES)],
            ["TLS_RSA_WITH_RC4_128_SHA", [], None],
        ),
    ],
    ids=lambda value: value.says() if isinstance(value, Wanted) else "",
)
def test_a_setting_is_compared_as_the_control_says(test: Wanted, good: list[object], bad: list[object]) -> None:
    assert [value for value in good if not test.holds(value)] == []
    assert [value for value in bad if test.holds(value)] == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"id": "x", "title": "x"}, "one of flags, files, kubelet and by"),
        ({"id": "x", "title": "x", "by": "attempts"}, "says in `how`"),
        ({"id": "x", "title": "x", "kubelet": {"a": {}}}, "one thing is asked"),
        ({"id": "x", "title": "x", "kubelet": {"a": {"set": True, "has": "b"}}}, "one thing is asked"),
        ({"id": "x", "title": "x", "by": "attempts", "how": "so", "why": "?"}, "Extra inputs"),
    ],
)
def test_a_control_that_says_nothing_or_too_much_is_refused(data: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Control.model_validate(data)
