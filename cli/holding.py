"""Verbs that hold a cluster for themselves: the options that all of them have, and the wait for who holds it now."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from cli.options import WaitOpt, WithoutRecordOpt
from cli.output import note

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from operations.record import Operation

_Verb = TypeVar("_Verb", bound=Callable[..., None])
_without_record: ContextVar[bool] = ContextVar("without_record", default=False)
_OPTIONS = {"wait": (WaitOpt, 0.0), "without_record": (WithoutRecordOpt, False)}
_LAST = ("dry_run", "yes", "as_json")


def holds(*options: str) -> Callable[[_Verb], _Verb]:
    """Give a verb --wait and --without-record, or those that are named.

    --wait runs the verb again once the cluster is free, from its start: what it had planned may no longer be so.
    """

    def add(verb: _Verb) -> _Verb:
        @functools.wraps(verb)
        def held(*, wait: float = 0.0, without_record: bool = False, **given: Any) -> None:
            before = _without_record.set(without_record)
            try:
                _run(functools.partial(verb, **given), wait)
            finally:
                _without_record.reset(before)

        signature = inspect.signature(verb, eval_str=True)
        own = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in _OPTIONS.items()
            if name in (options or _OPTIONS)
        ]
        first = [each for each in signature.parameters.values() if each.name not in _LAST]
        last = [each for each in signature.parameters.values() if each.name in _LAST]
        every = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*first, *own, *last)]
        held.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        held.__annotations__ = {each.name: each.annotation for each in every}
        return held  # type: ignore[return-value]

    return add


def hold(
    cluster: Cluster, access: Access | None, verb: str, about: str = "", *, repeatable: bool = False
) -> AbstractContextManager[Operation]:
    """`operations.record.one_operation` as the command line has it."""
    from operations.record import one_operation

    without_record = _without_record.get()
    return one_operation(
        cluster, access, verb, about, repeatable=repeatable, without_record=without_record, report=note
    )


def _run(verb: Callable[[], None], wait_s: float) -> None:
    if not wait_s:
        verb()
        return
    from operations.record import InUseError

    until = time.monotonic() + wait_s
    while True:
        try:
            verb()
            return
        except InUseError as error:
            left = until - time.monotonic()
            if left <= 0:
                raise
            note(f"{error.record.cluster} is locked by {error.record.held_by}; waiting for it for up to {left:.0f} s")
            if not error.ends_within(left):
                raise
