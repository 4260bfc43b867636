"""`list`: the clusters of this checkout."""

from __future__ import annotations

import os
from typing import Any

from rich.table import Table

from cli.output import console, errors, print_json
from clients.access import STATE
from cluster.load import SpecError, clusters, find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from stacks.backend import chosen, in_folder

_COLUMNS = ("name", "cloud", "region", "sites", "built")


def list_(*, as_json: bool) -> None:
    """Print a row per cluster."""
    rows = [_row(name) for name in clusters(ROOT)]
    if as_json:
        print_json({"clusters": rows})
        return
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column.upper())
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in _COLUMNS))
    console.print(table)
    for row in rows:
        if row["error"]:
            errors.print(f"{row['name']}: its spec has errors: ./menagerie check {row['name']}", style="yellow")


def _row(name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "cloud": None, "region": None, "sites": [], "built": None, "error": False}
    try:
        cluster = load_cluster(find_cluster(name, ROOT))
    except SpecError:
        return {**row, "error": True}
    plane = cluster.spec.control_plane
    return {
        **row,
        "cloud": plane.cloud.value,
        "region": plane.region,
        "sites": list(cluster.spec.sites),
        "built": _built(cluster),
    }


def _built(cluster: Cluster) -> bool | str:
    """Return whether this checkout has the cluster's stack; the backend's place if the stack would be elsewhere.

    Finds the backend as `operations.stack.has_stack` does.
    """
    backend = chosen(cluster.name, STATE / cluster.name, ROOT, os.environ, is_lab=cluster.is_lab)
    if backend.configured_by:
        return backend.shown
    return cluster.name in in_folder(backend)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "?" if value is None else str(value)
