"""Finds broken nodes by their conditions: since when, and which repair helps. Pure: takes API nodes, returns findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubernetes import client

from cluster import preflight
from cluster.repair import Action, Condition, Repair

SKIP = "menagerie.dev/skip-repair"
"""Annotation of a Node that is never repaired automatically; its value is the reason."""
HANDS = ("then repair or replace it", ": replace it")
RESET = ("then power-cycle the host", "then reset the GPU", "the driver asks for:")
"""Wording of preflight on the host for what an Xid or a GPU needs. A test compares it with the host's program."""
_RANK = (Action.REBOOT, Action.POWER_CYCLE, Action.TICKET)
# A power cycle also resets all GPUs. Only links, memory and processors need a person to reseat them.
_BY_REASON: Mapping[str, Action] = {
    "GpuMissing": Action.POWER_CYCLE,
    "GpuFaulty": Action.POWER_CYCLE,
    "XidReported": Action.POWER_CYCLE,
    "NvlinkDown": Action.POWER_CYCLE,
    "DiskMissing": Action.POWER_CYCLE,
    "DriverMissing": Action.REBOOT,
    "DiagnosticFailed": Action.REBOOT,
}
"""Reason of preflight -> the action that helps. All others need a person or another setting."""


@dataclass(frozen=True)
class BrokenNode:
    """A broken node. since: Unix time when its oldest bad condition started. why: all of them, in words."""

    host: str
    why: str
    action: Action
    since: float


def bad(node: client.V1Node, settings: Repair) -> list[tuple[Condition, client.V1NodeCondition]]:
    """Return the node's bad conditions, however recent."""
    by_type = {condition.type: condition for condition in node.status.conditions or ()}
    listed = [(rule, by_type[rule.type]) for rule in settings.conditions if rule.type in by_type]
    return [(rule, condition_) for rule, condition_ in listed if condition_.status == rule.status]


def broken(node: client.V1Node, settings: Repair, now: float) -> BrokenNode | None:
    """Return the finding if a node has been bad for long enough to be repaired, else None.

    now: Unix time, by the API server's clock. A node that was created less than `node_startup` ago is not judged.
    """
    if now - node.metadata.creation_timestamp.timestamp() < settings.node_startup / 1000:
        return None
    ripe = [
        (rule, condition)
        for rule, condition in bad(node, settings)
        if now - _since(condition, now) >= rule.after / 1000
    ]
    if not ripe:
        return None
    why = "; ".join(_description(condition) for _, condition in ripe)
    action = max((_action(rule, condition) for rule, condition in ripe), key=_RANK.index)
    return BrokenNode(node.metadata.name, why, action, min(_since(condition, now) for _, condition in ripe))


def _since(condition: client.V1NodeCondition, now: float) -> float:
    """Return when a condition started. Without a time, it counts as started now."""
    return condition.last_transition_time.timestamp() if condition.last_transition_time else now


def _description(condition: client.V1NodeCondition) -> str:
    text = str(condition.message or condition.reason or condition.status)
    if condition.type == "Ready":
        return f"NotReady ({text})"
    return text if condition.type == preflight.CONDITION else f"{condition.type}: {text}"


def _action(rule: Condition, condition: client.V1NodeCondition) -> Action:
    if rule.action is not None or rule.type != preflight.CONDITION:
        return rule.action or Action.REBOOT
    message = condition.message or ""
    if any(words in message for words in HANDS):
        return Action.TICKET
    if any(words in message for words in RESET):
        return Action.POWER_CYCLE
    return _BY_REASON.get(condition.reason or "", Action.TICKET)
