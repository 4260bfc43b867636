"""The engine's events: as words for a progress display, and as data for a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stacks.steps import uncoloured

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventMetadata

_WORDS = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "replace": "replacing",
    "create-replacement": "creating the new",
    "delete-replaced": "deleting the old",
    "refresh": "reading",
}


def describe(report: Callable[[str], None]) -> Callable[[EngineEvent], None]:
    """Return a listener that reports to `report` what the engine does, with the number of finished resources."""
    done = 0

    def on_event(event: EngineEvent) -> None:
        nonlocal done
        if event.res_outputs_event:
            done += 1
        started = event.resource_pre_event
        if started and (word := _WORDS.get(str(started.metadata.op.value))):
            name = started.metadata.urn.rsplit("::", 1)[-1]
            report(f"{word} {name} ({done} done)")
        # The engine's own remarks are no events of this kind: this is what the program reports, such as a wait for a grant.
        if (heard := event.diagnostic_event) and heard.severity == "info":
            report(uncoloured(heard.message))

    return on_event


def fan_out(*listeners: Callable[[EngineEvent], None]) -> Callable[[EngineEvent], None]:
    """Return one listener that passes events to several."""

    def on_event(event: EngineEvent) -> None:
        for listener in listeners:
            listener(event)

    return on_event


@dataclass(frozen=True)
class ResourceStarted:
    """A resource that the engine starts to work on, or would in a preview.

    operation: the engine's word. parent: URN, "" for none. before, after: inputs, None where the resource does not exist
    yet or any longer; the engine replaces secrets with placeholder values. forcing: properties that can only change by
    replacing the resource. changed: all properties that differ.
    """

    operation: str
    urn: str
    type: str
    parent: str
    protected: bool
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    forcing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def on_resource_start(report: Callable[[ResourceStarted], None]) -> Callable[[EngineEvent], None]:
    """Return a listener that passes each resource to `report` when the engine starts to work on it."""

    def on_event(event: EngineEvent) -> None:
        if started := event.resource_pre_event:
            report(_begun(started.metadata))

    return on_event


def deleted(resource: Mapping[str, Any]) -> ResourceStarted:
    """Return a resource of a deployment as the engine would present it when deleting it."""
    return ResourceStarted(
        operation="delete",
        urn=resource["urn"],
        type=resource["type"],
        parent=resource.get("parent", ""),
        protected=bool(resource.get("protect")),
        before=resource.get("inputs", {}),
        after=None,
    )


def _begun(metadata: StepEventMetadata) -> ResourceStarted:
    old, new = metadata.old, metadata.new
    detailed = {path: diff.diff_kind.value for path, diff in (metadata.detailed_diff or {}).items()}
    forcing = [path for path, kind in detailed.items() if kind.endswith("-replace")] or metadata.keys or []
    state = new or old
    return ResourceStarted(
        operation=str(metadata.op.value),
        urn=metadata.urn,
        type=metadata.type,
        parent=(state.parent if state else None) or "",
        protected=bool((old and old.protect) or (new and new.protect)),
        before=old.inputs if old else None,
        after=new.inputs if new else None,
        forcing=tuple(sorted(forcing)),
        changed=tuple(sorted(detailed or metadata.diffs or ())),
    )
