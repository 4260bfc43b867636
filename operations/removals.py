"""The cluster's account of nodes taken out of service by themselves: what the breaker remembers between two looks.

Whoever removes nodes asks `operations.breaker` and then takes its place here, which fails where the share is used up: two
machines that decide at the same moment cannot exceed it together.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from kubernetes import client

from clients import notebook
from cluster.quantities import share_of
from cluster.shared import known as known_fields
from operations.breaker import Limits, Removal

NAME = "menagerie-removals"
"""The ConfigMap: pages removals (a list of `Removal`) and paused (true or false)."""


class NoRoomError(Exception):
    """The share of the window is used up, by somebody who was quicker."""


def known(api: client.ApiClient) -> tuple[tuple[Removal, ...], bool]:
    """(all that are remembered, whether everything is paused since all nodes had gone)."""
    pages = notebook.read(api, NAME)
    return _listed(pages), bool(pages.get("paused"))


def pause(api: client.ApiClient, paused: bool) -> None:
    """Remember that all nodes had gone, or that they are back."""

    def edit(pages: notebook.Pages) -> None:
        pages["paused"] = paused

    notebook.change(api, NAME, edit)


def take(api: client.ApiClient, removal: Removal, limits: Limits, nodes: int) -> None:
    """Write a removal down before it begins. nodes: how many the cluster has. NoRoomError where it would be one too many."""

    def edit(pages: notebook.Pages) -> None:
        # As they were written, with fields that only a newer Menagerie knows.
        recent = [each for each in _written(pages) if each["at"] > removal.at - limits.window_s]
        if len(recent) >= share_of(limits.max_removed, nodes, least=0):
            wait_s = math.ceil(min((each["at"] for each in recent), default=0) + limits.window_s - removal.at)
            raise NoRoomError(
                f"{len(recent)} nodes were taken out meanwhile; {removal.host} waits"
                + (f" {wait_s} s" if recent else "")
                + ". Override: --max-removal"
            )
        pages["removals"] = [*recent, asdict(removal)]

    notebook.change(api, NAME, edit)


def _listed(pages: notebook.Pages) -> tuple[Removal, ...]:
    return tuple(known_fields(Removal, each) for each in _written(pages))


def _written(pages: notebook.Pages) -> list[dict[str, Any]]:
    return list(pages.get("removals", ()))
