"""Patience with an etcd that elects a leader, stalls on its disk, or whose members have just found each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clients.etcd_client import EtcdError
from clients.waiting import wait_until
from operations.record.journal import Report

SETTLED_S = 60
_T = TypeVar("_T")


def once_settled(ask: Callable[[], _T], report: Report) -> _T:
    """What `ask` comes to, over errors that pass; TimedOutError where they last for longer than `SETTLED_S`.

    `ask` may be called again after a change whose answer was lost, so it looks first, or changes nothing the second time.
    """
    answers: list[_T] = []

    def refused() -> str:
        try:
            answers.append(ask())
        except EtcdError as error:
            if not error.retryable:
                raise
            return str(error).splitlines()[-1]
        return ""

    wait_until(refused, SETTLED_S, report)
    return answers[0]
