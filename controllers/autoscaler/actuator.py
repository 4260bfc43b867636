"""Carries decisions out through a cluster's API and its groups of machines. Every act may be repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients import notebook
from clients.access import API_TIMEOUT_S
from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.groups import GroupError, Groups
from controllers.autoscaler.keys import NOTEBOOK
from controllers.autoscaler.memory import PAGE, Memory, packed, unpacked
from controllers.autoscaler.world import BY, World
from operations import removals
from operations.breaker import Limits, Removal
from operations.drain import DrainMark, DrainTimedOutError, OutOfServiceError, Rules, cordon, drain, uncordon
from operations.removals import NoRoomError

_RULES = Rules(timeout_s=0, unmanaged=False, empty_dir=False)
"""One round of evictions; the next pass repeats it. Pods whose work or files would be lost are not evicted."""

FORESEEN = (GroupError, NoRoomError, OutOfServiceError, ApiException, urllib3.exceptions.HTTPError)


@dataclass(frozen=True)
class Actuator:
    """Carries decisions out. api: makes a client. limits: of the shared brake on removals."""

    api: Callable[[], client.ApiClient]
    groups: Groups
    limits: Limits

    def carry_out(self, decision: Decision, world: World) -> str:
        """Carry out a decision. Return a message for people, "" for none. Errors: raises one of `FORESEEN` if it fails."""
        api = self.api()
        match decision.act:
            case Act.GROW:
                self.groups.grow(decision.pool, decision.size)
            case Act.GIVE_BACK:
                uncordon(api, decision.node, BY)
            case Act.CORDON:
                removal = Removal(decision.node, world.fleet.now, BY)
                removals.take(api, removal, self.limits, len(world.fleet.members))
                cordon(api, decision.node, DrainMark(BY, decision.why))
            case Act.DRAIN:
                try:
                    drain(api, decision.node, _RULES)
                except DrainTimedOutError as error:
                    return str(error).replace(" after 0 s", " yet")
            case Act.REMOVE:
                self.groups.remove(decision.pool, [decision.machine])
            case Act.FORGET:
                _delete(api, decision.node)
        return ""

    def recall(self) -> Memory:
        """Return the stored memory. An unreadable one is replaced by an empty one: booting machines count as room even without it.

        Errors: raises NewerDataError if a newer autoscaler wrote it, because its orders must not be forgotten.
        """
        page = notebook.read(self.api(), NOTEBOOK).get(PAGE)
        try:
            return unpacked(page) if page else Memory()
        except ValueError:
            return Memory()

    def remember(self, memory: Memory) -> None:
        text = packed(memory)

        def edit(pages: notebook.Pages) -> None:
            pages[PAGE] = text

        notebook.change(self.api(), NOTEBOOK, edit)

    def pause(self, paused: bool) -> None:
        """Record for the brake whether all nodes were lost at once (True) or are back (False)."""
        removals.pause(self.api(), paused)


def _delete(api: client.ApiClient, node: str) -> None:
    try:
        client.CoreV1Api(api).delete_node(node, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
