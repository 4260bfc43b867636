"""Retries while an etcd elects a leader, stalls on its disk, or its members have just connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clients.etcd_client import EtcdError
from clients.waiting import wait_until
from operations.record.journal import Report

SETTLED_S = 60
_T = TypeVar("_T")


def once_settled(ask: Callable[[], _T], report: Report) -> _T:
    """Call `ask` and return its result; retry on temporary errors. Raises TimedOutError if they last over `SETTLED_S`.

    `ask` must be idempotent: it may be called again after a change whose response was lost.
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
