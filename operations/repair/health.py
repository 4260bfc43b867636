"""Which nodes are broken, by their conditions, since when, and what helps. Pure: nodes as the API has them in, findings out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubernetes import client

from cluster import preflight
from cluster.repair import Action, Condition, Repair

SKIP = "menagerie.dev/skip-repair"
"""Annotation of a Node that is never repaired by itself; its value says why."""
HANDS = ("then repair or replace it", ": replace it")
RESET = ("then power-cycle the host", "then reset the GPU", "the driver asks for:")
"""How preflight on the host says what an Xid or a GPU asks for; a test compares them with the host's own words."""
_RANK = (Action.REBOOT, Action.POWER_CYCLE, Action.TICKET)
# A reset of all GPUs is what a power cycle does too; only links, memory and processors are somebody's to plug.
_BY_REASON: Mapping[str, Action] = {
    "GpuMissing": Action.POWER_CYCLE,
    "GpuFaulty": Action.POWER_CYCLE,
    "XidReported": Action.POWER_CYCLE,
    "NvlinkDown": Action.POWER_CYCLE,
    "DiskMissing": Action.POWER_CYCLE,
    "DriverMissing": Action.REBOOT,
    "DiagnosticFailed": Action.REBOOT,
}
"""Reason of preflight -> what helps; all others need hands or another setting."""


@dataclass(frozen=True)
class Finding:
    """A broken node. since: Unix time at which the oldest of its conditions began. why: all of them, in words."""

    host: str
    why: str
    action: Action
    since: float


def bad(node: client.V1Node, settings: Repair) -> list[tuple[Condition, client.V1NodeCondition]]:
    """The conditions that the node has and should not, however short a time."""
    own = {each.type: each for each in node.status.conditions or ()}
    listed = [(rule, own[rule.type]) for rule in settings.conditions if rule.type in own]
    return [(rule, found) for rule, found in listed if found.status == rule.status]


def broken(node: client.V1Node, settings: Repair, now: float) -> Finding | None:
    """What is wrong with a node for so long that it is to be repaired; None where nothing is.

    now: Unix time, by the API server's clock. A node that began less than `node_startup` ago is not judged.
    """
    if now - node.metadata.creation_timestamp.timestamp() < settings.node_startup / 1000:
        return None
    ripe = [(rule, found) for rule, found in bad(node, settings) if now - _since(found, now) >= rule.after / 1000]
    if not ripe:
        return None
    why = "; ".join(_told(found) for _, found in ripe)
    action = max((_action(rule, found) for rule, found in ripe), key=_RANK.index)
    return Finding(node.metadata.name, why, action, min(_since(found, now) for _, found in ripe))


def _since(found: client.V1NodeCondition, now: float) -> float:
    """A condition that does not say since when has only just begun."""
    return found.last_transition_time.timestamp() if found.last_transition_time else now


def _told(found: client.V1NodeCondition) -> str:
    said = str(found.message or found.reason or found.status)
    if found.type == "Ready":
        return f"NotReady ({said})"
    return said if found.type == preflight.CONDITION else f"{found.type}: {said}"


def _action(rule: Condition, found: client.V1NodeCondition) -> Action:
    if rule.action is not None or rule.type != preflight.CONDITION:
        return rule.action or Action.REBOOT
    message = found.message or ""
    if any(words in message for words in HANDS):
        return Action.TICKET
    if any(words in message for words in RESET):
        return Action.POWER_CYCLE
    return _BY_REASON.get(found.reason or "", Action.TICKET)
