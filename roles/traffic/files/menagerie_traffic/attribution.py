"""Which namespace each address belongs to. Pure.

An address has a namespace only while two witnesses agree: the node says which pod's sandbox has it, and the API says
which namespace that pod is in. It stays with its sandbox, even if the API forgets the pod first, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .api import Pod
from .reservations import Sandbox


class Held(NamedTuple):
    """An address that has a namespace. sandbox: its id."""

    sandbox: str
    namespace: str


class Attributed(NamedTuple):
    """waiting: addresses in use without a namespace; their packets count as of unknown pods."""

    held: dict[str, Held]
    waiting: frozenset[str]


def attributed(
    sandboxes: Mapping[str, Sandbox], pods: Mapping[str, Pod] | None, before: Mapping[str, Held]
) -> Attributed:
    """Return who has which address now. pods: by uid, None if the API has not answered yet."""
    held: dict[str, Held] = {}
    by_name = {(each.namespace, each.name): each for each in (pods or {}).values()}
    for address, sandbox in sandboxes.items():
        former = before.get(address)
        if former is not None and former.sandbox == sandbox.id:
            held[address] = former
            continue
        pod = (pods or {}).get(sandbox.uid) if sandbox.uid else by_name.get((sandbox.namespace, sandbox.name))
        # A pod in the host's network has no address of its own, so this file is about another one.
        if pod is not None and not pod.host_network and (pod.namespace, pod.name) == (sandbox.namespace, sandbox.name):
            held[address] = Held(sandbox.id, pod.namespace)
    return Attributed(held, frozenset(set(sandboxes) - set(held)))


class Change(NamedTuple):
    removed: list[str]
    added: dict[str, str]


def change(before: Mapping[str, str], after: Mapping[str, str]) -> Change:
    """Return what leads from one map of addresses to namespaces to another. A moved address is removed and added."""
    removed = sorted(each for each, namespace in before.items() if after.get(each) != namespace)
    added = {each: namespace for each, namespace in after.items() if before.get(each) != namespace}
    return Change(removed, added)


def unattributed(pods: Iterable[Pod]) -> dict[str, int]:
    """Return namespace -> its pods in the host's network, whose packets nobody can tell from the host's own."""
    counts: dict[str, int] = {}
    for pod in pods:
        if pod.host_network:
            counts[pod.namespace] = counts.get(pod.namespace, 0) + 1
    return counts
