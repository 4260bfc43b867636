"""The options of verbs that hold a cluster's lock."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from cli.options import WaitOpt, WithoutRecordOpt

_Verb = TypeVar("_Verb", bound=Callable[..., None])
without_record: ContextVar[bool] = ContextVar("without_record", default=False)
"""Whether the running verb was given --without-record."""
_OPTIONS = {"wait": (WaitOpt, 0.0), "without_record": (WithoutRecordOpt, False)}
_LAST = ("dry_run", "yes", "as_json")


def holds(*options: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the options --wait and --without-record, or only the named ones.

    --wait runs the verb again from its start when the cluster is free, because its plan may be outdated.
    """

    def add(verb: _Verb) -> _Verb:
        @functools.wraps(verb)
        def held(*, wait: float = 0.0, **arguments: Any) -> None:
            before = without_record.set(arguments.pop("without_record", False))
            try:
                _run(functools.partial(verb, **arguments), wait)
            finally:
                without_record.reset(before)

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


def _run(verb: Callable[[], None], wait_s: float) -> None:
    if not wait_s:
        verb()
        return
    from cli.actions import holding

    holding.when_free(verb, wait_s)
