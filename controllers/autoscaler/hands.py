"""What carries decisions out: a cluster's API and its groups of machines. Every act may be done again."""

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
from controllers.autoscaler.memory import PAGE, Memory, packed, unpacked
from controllers.autoscaler.seen import BY, World
from operations import removals
from operations.breaker import Limits, Removal
from operations.drain import DrainTimedOutError, Mark, OutOfServiceError, Rules, cordon, drain, uncordon
from operations.removals import NoRoomError

NOTEBOOK = "menagerie-autoscaler"
"""The ConfigMap with what is remembered."""
_RULES = Rules(timeout_s=0, unmanaged=False, empty_dir=False)
"""One round of evictions; the next pass asks again. What would be lost isn't evicted at all."""

FORESEEN = (GroupError, NoRoomError, OutOfServiceError, ApiException, urllib3.exceptions.HTTPError)


@dataclass(frozen=True)
class Hands:
    """api: makes a client. limits: of the one brake on removals."""

    api: Callable[[], client.ApiClient]
    groups: Groups
    limits: Limits

    def carry_out(self, decision: Decision, world: World) -> str:
        """What is to be said of it, "" for nothing. Raises one of `FORESEEN` where it could not be done."""
        api = self.api()
        match decision.act:
            case Act.GROW:
                self.groups.grow(decision.pool, decision.size)
            case Act.GIVE_BACK:
                uncordon(api, decision.node, BY)
            case Act.CORDON:
                removal = Removal(decision.node, world.fleet.now, BY)
                removals.take(api, removal, self.limits, len(world.fleet.members))
                cordon(api, decision.node, Mark(BY, decision.why))
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
        """What was written down. One that can't be read is begun anew: machines that boot count as room without it, too.

        NewerDataError for what a newer autoscaler wrote, which knows of orders that must not be forgotten.
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
        """Remember for the brake that all nodes had gone, or are back."""
        removals.pause(self.api(), paused)


def _delete(api: client.ApiClient, node: str) -> None:
    try:
        client.CoreV1Api(api).delete_node(node, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
