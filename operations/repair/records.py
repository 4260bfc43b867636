"""Records of repairs by host: number of attempts, progress of the last one, and whether a person is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from kubernetes import client

from clients import notebook
from cluster import shared

NAME = "menagerie-repairs"
"""The ConfigMap, with the page hosts: host -> `RepairRecord`."""


@dataclass(frozen=True)
class RepairRecord:
    """attempts: ended repairs, successful or not, since the host was last healthy for `min_healthy_period`.

    boot: ID of the boot in which the machine was broken, set when a repair has ended that boot; acted: Unix time of that.
    healed: Unix time when the last repair succeeded, 0 if it did not. ticket: why a person is needed, "" if none is.
    """

    attempts: int = 0
    boot: str = ""
    acted: float = 0.0
    healed: float = 0.0
    why: str = ""
    ticket: str = ""

    def tried(self) -> RepairRecord:
        """Return the record after a repair that ended."""
        return replace(self, attempts=self.attempts + 1, boot="", acted=0.0)


def repair_records(api: client.ApiClient) -> dict[str, RepairRecord]:
    """Return host -> record. Hosts that were never repaired, or only long ago, have none."""
    hosts: dict[str, dict[str, Any]] = notebook.read(api, NAME).get("hosts", {})
    return {host: shared.from_known_fields(RepairRecord, record) for host, record in hosts.items()}


def note(api: client.ApiClient, host: str, edit: Callable[[RepairRecord], RepairRecord]) -> RepairRecord:
    """Change a host's record and return the new one. Fields that only a newer Menagerie knows are kept."""

    def change(pages: notebook.Pages) -> RepairRecord:
        hosts = pages.setdefault("hosts", {})
        written = hosts.get(host, {})
        record = edit(shared.from_known_fields(RepairRecord, written))
        hosts[host] = {**written, **asdict(record)}
        return record

    return notebook.change(api, NAME, change)


def forget(api: client.ApiClient, hosts: list[str]) -> None:
    """Delete the records of these hosts."""

    def change(pages: notebook.Pages) -> None:
        for host in hosts:
            pages.get("hosts", {}).pop(host, None)

    notebook.change(api, NAME, change)
