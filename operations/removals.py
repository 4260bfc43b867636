"""The cluster's record of automatic removals of nodes: what the breaker remembers between two checks.

A caller that removes nodes asks `operations.breaker` and then reserves a place here, which fails if the share is used up.
Two machines that decide at the same moment can't exceed the share together.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from kubernetes import client

from clients import notebook
from cluster.quantities import share_of
from cluster.shared import from_known_fields as known_fields
from operations.breaker import Limits, Removal, enough

NAME = "menagerie-removals"
"""The ConfigMap, with the pages removals (a list of `Removal`) and paused (true or false)."""


class NoRoomError(Exception):
    """The window's share is used up by another process that was faster."""


def recorded_removals(api: client.ApiClient) -> tuple[tuple[Removal, ...], bool]:
    """Return (all recorded removals, whether removals are paused because all nodes had gone)."""
    pages = notebook.read(api, NAME)
    return _listed(pages), bool(pages.get("paused"))


def pause(api: client.ApiClient, paused: bool) -> None:
    """Record that all nodes have gone, or that they are back."""

    def edit(pages: notebook.Pages) -> None:
        pages["paused"] = paused

    notebook.change(api, NAME, edit)


def take(api: client.ApiClient, removal: Removal, limits: Limits, nodes: int) -> None:
    """Record a removal before it starts. nodes: the cluster's number of nodes. Raises NoRoomError if it exceeds the share."""

    def edit(pages: notebook.Pages) -> None:
        # Keep the raw records: they can have fields that only a newer Menagerie knows.
        recent = [record for record in _written(pages) if record["at"] > removal.at - limits.window_s]
        if len(recent) >= share_of(limits.max_removed, nodes, least=0):
            wait_s = math.ceil(min((record["at"] for record in recent), default=0) + limits.window_s - removal.at)
            raise NoRoomError(
                f"{len(recent)} nodes were removed meanwhile; {removal.host} waits"
                + (f" {wait_s} s" if recent else "")
                + f". To override it for one run: {limits.override} {enough(len(recent) + 1, nodes)}"
            )
        pages["removals"] = [*recent, asdict(removal)]

    notebook.change(api, NAME, edit)


def _listed(pages: notebook.Pages) -> tuple[Removal, ...]:
    return tuple(known_fields(Removal, record) for record in _written(pages))


def _written(pages: notebook.Pages) -> list[dict[str, Any]]:
    return list(pages.get("removals", ()))
