"""Waiting: until it comes, or with what was missing and a way out."""

from __future__ import annotations

import pytest

from cli.failures import explain
from operations.waiting import TimedOutError, wait_until


def test_waiting_ends_when_nothing_is_missing_and_tells_each_reason_once() -> None:
    reasons, told = ["a", "a", "b", ""], list[str]()
    wait_until(lambda: reasons.pop(0), 60, told.append, every_s=0)
    assert told == ["a", "b"]


def test_giving_up_names_what_was_missing_and_the_user_is_told_where_to_look() -> None:
    with pytest.raises(TimedOutError, match="gave up after 0 s: etcd-main-1 is away") as raised:
        wait_until(lambda: "etcd-main-1 is away", 0, lambda _: None)
    told = explain(raised.value)
    assert told is not None
    assert told.kind == "timed-out"
    assert "etcd-main-1 is away\n  `./menagerie status` of the cluster shows which part is down" in told.text
    assert 'docs/lab.md, "When something does not come up"' in told.text
