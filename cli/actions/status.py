"""`status` of the fleet and of a cluster. Each of its sections is in a module that `cli.verbs.status` imports."""

from __future__ import annotations

from cli import exits
from cli.sections import Look, Report
from cli.views.status import print_lines, print_status, rows
from clients.access import Access, NotBuiltError
from cluster.load import clusters, find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from operations import stack
from operations.stack import Stacks
from operations.status import Status
from operations.status import read as health
from operations.status.fleet import read_fleet


def cluster(loaded: Cluster) -> Look:
    """Look at a cluster and all its parts."""
    access = stack.access_to(loaded)

    def look() -> Report:
        status = health.read_status(loaded, access)
        return Report(exits.DONE if status.ok else exits.FAILED, status.to_json(), lambda: print_status(status))

    return look


def fleet() -> Look:
    """Look at every cluster in inventories/."""
    accesses: dict[str, Access] = {}

    def read(name: str, stacks: Stacks) -> Status | None:
        loaded = load_cluster(find_cluster(name, ROOT))
        if not stacks.has(loaded):
            return None
        try:
            accesses[name] = accesses.get(name) or stack.access_to(loaded)
        except NotBuiltError:
            return None
        return health.read_status(loaded, accesses[name])

    def look() -> Report:
        stacks = Stacks()
        state = read_fleet(clusters(ROOT), lambda name: read(name, stacks))
        return Report(exits.DONE if state.ok else exits.FAILED, state.to_json(), lambda: print_lines(rows(state)))

    return look
