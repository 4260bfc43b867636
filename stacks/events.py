"""The engine's events in words, for a progress display."""

from __future__ import annotations

from collections.abc import Callable

from pulumi.automation.events import EngineEvent

_WORDS = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "replace": "replacing",
    "create-replacement": "creating anew",
    "delete-replaced": "deleting the old",
    "refresh": "looking at",
}


def describe(report: Callable[[str], None]) -> Callable[[EngineEvent], None]:
    """A listener that tells `report` what the engine does, with the number of resources finished."""
    done = 0

    def on_event(event: EngineEvent) -> None:
        nonlocal done
        if event.res_outputs_event:
            done += 1
        started = event.resource_pre_event
        if started and (word := _WORDS.get(str(started.metadata.op.value))):
            name = started.metadata.urn.rsplit("::", 1)[-1]
            report(f"{word} {name} ({done} done)")

    return on_event
