"""`etcd state`: how every member is."""

from __future__ import annotations

import typer
from rich.text import Text

from cli.etcd_verbs import reached
from cli.etcd_view import print_view, told
from cli.options import ClusterArg, JsonOpt, examples
from cli.output import errors, print_json

EXAMPLES = examples(
    ("etcd state jaguar", "all members of both"), ("etcd state jaguar --json", "with all that is known")
)


def state(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show every member: who leads, revisions, sizes, disks, alarms. Reads only.

    Says under the table what is not as it should be, and the command that helps.
    Exit 1 when something is not.
    """
    from operations.etcds.look import findings, look, reach

    one, access = reached(cluster, quiet=as_json)
    views = [look(reach(one, access, role)) for role in ("main", "events")]
    found = [line for view in views for line in findings(view)]
    if as_json:
        print_json({"cluster": one.name, "etcds": {view.etcd.role: told(view) for view in views}, "findings": found})
    else:
        for view in views:
            print_view(view)
        for line in found:
            errors.print(Text(line, style="yellow"))
    raise typer.Exit(1 if found else 0)
