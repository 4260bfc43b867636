"""`list`: its arguments."""

from __future__ import annotations

from cli.examples import examples
from cli.options import JsonOpt


@examples(("list", "a line per cluster"), ("list --json", "for a program"))
def list_(as_json: JsonOpt = False) -> None:
    """List the clusters in inventories/: name, cloud, region, sites, and whether they are built. Changes nothing.

    Reads only this checkout: for a stack in a shared backend, it shows the
    backend. `status` shows the clusters' health.
    """
    from cli.actions import fleet

    fleet.list_(as_json=as_json)
