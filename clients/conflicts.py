"""Optimistic concurrency: change an object by its resourceVersion, and retry on a conflict."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from kubernetes.client.exceptions import ApiException

_ATTEMPTS = 20

_T = TypeVar("_T")


def until_settled(attempt: Callable[[], _T]) -> _T:
    """Call `attempt`, which reads and then writes, until there is no conflict. Raises the conflict after 20 attempts."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
    return attempt()
