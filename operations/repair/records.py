"""What was done for each host so far: how often it was tried, how far the last repair came, and whether hands are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from kubernetes import client

from clients import notebook
from cluster import shared

NAME = "menagerie-repairs"
"""The ConfigMap: page hosts, host -> `Record`."""


@dataclass(frozen=True)
class Record:
    """attempts: repairs that ended, well or not, since the host was last well for `min_healthy_period`.

    boot: the boot in which the machine was broken, once it was told to end it; acted: Unix time of that. healed: Unix time
    at which the last repair ended well, 0 where it did not. ticket: why hands are needed, "" where they are not.
    """

    attempts: int = 0
    boot: str = ""
    acted: float = 0.0
    healed: float = 0.0
    why: str = ""
    ticket: str = ""

    def tried(self) -> Record:
        """After a repair that ended."""
        return replace(self, attempts=self.attempts + 1, boot="", acted=0.0)


def known(api: client.ApiClient) -> dict[str, Record]:
    """Host -> its record; hosts that were never repaired, or long ago, have none."""
    hosts: dict[str, dict[str, Any]] = notebook.read(api, NAME).get("hosts", {})
    return {host: shared.known(Record, record) for host, record in hosts.items()}


def note(api: client.ApiClient, host: str, edit: Callable[[Record], Record]) -> Record:
    """Change a host's record; the new one. Fields that only a newer Menagerie knows stay as they are."""

    def change(pages: notebook.Pages) -> Record:
        hosts = pages.setdefault("hosts", {})
        written = hosts.get(host, {})
        made = edit(shared.known(Record, written))
        hosts[host] = {**written, **asdict(made)}
        return made

    return notebook.change(api, NAME, change)


def forget(api: client.ApiClient, hosts: list[str]) -> None:
    """No records of these any more."""

    def change(pages: notebook.Pages) -> None:
        for host in hosts:
            pages.get("hosts", {}).pop(host, None)

    notebook.change(api, NAME, change)
