"""Verbs that hold a cluster's lock: their common options, and the wait for the current holder."""

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
    """Give a verb the options --wait and --without-record, or only the named ones.

    --wait runs the verb again from its start when the cluster is free, because its plan may be outdated.
    """

    def add(verb: _Verb) -> _Verb:
        @functools.wraps(verb)
        def held(*, wait: float = 0.0, without_record: bool = False, **arguments: Any) -> None:
            before = _without_record.set(without_record)
            try:
                _run(functools.partial(verb, **arguments), wait)
            finally:
                _without_record.reset(before)

        signature = inspect.signature(verb, eval_str=True)
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in _OPTIONS.items()
            if name in (options or _OPTIONS)
        ]
        first = [parameter for parameter in signature.parameters.values() if parameter.name not in _LAST]
        last = [parameter for parameter in signature.parameters.values() if parameter.name in _LAST]
        every = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*first, *added, *last)]
        held.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        held.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return held  # type: ignore[return-value]

    return add


def hold(
    cluster: Cluster, access: Access | None, verb: str, about: str = "", *, options: str = "", repeatable: bool = False
) -> AbstractContextManager[Operation]:
    """Call `operations.record.one_operation` with the command line's options."""
    from operations.record import one_operation

    without_record = _without_record.get()
    return one_operation(
        cluster,
        access,
        verb,
        about,
        options=options,
        repeatable=repeatable,
        without_record=without_record,
        report=note,
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
            note(f"{error.record.cluster} is locked by {error.record.held_by}; waiting up to {left:.0f} s")
            if not error.ends_within(left):
                raise
