"""Moves leadership to another member."""

from __future__ import annotations

from operations.etcds.look import EtcdView
from operations.etcds.snapshots import EtcdRefusedError


def move(view: EtcdView, name: str, *, only_look: bool = False) -> str:
    """Move leadership to `name`. Return what happened, as a sentence. Raises EtcdRefusedError if that member can't lead."""
    etcd = view.etcd
    chosen = next(state for state in view.members if state.member == etcd.member(name))
    leader = view.leader
    if leader is None:
        raise EtcdRefusedError(f"etcd {etcd.role} has no leader. Nothing was changed. See: {etcd.status_command}")
    if leader.name == name:
        return f"etcd {etcd.role}: {name} is the leader already."
    if chosen.status is None or chosen.status.learner or not chosen.healthy:
        why = "has no vote yet" if chosen.status and chosen.status.learner else chosen.problem or "does not respond"
        raise EtcdRefusedError(f"{name} can't lead: {why}. Nothing was changed.")
    if only_look:
        return f"etcd {etcd.role}: leadership would move from {leader.name} to {name}."
    etcd.client.move_leader(leader.name, chosen.status.id)
    terms = {status.term for status in etcd.client.statuses().values()}
    term = f" (term {max(terms)})" if terms else ""
    return f"etcd {etcd.role}: leadership moved from {leader.name} to {name}{term}."
