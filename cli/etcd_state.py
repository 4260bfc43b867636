"""`status CLUSTER etcd`: how every member is."""

from __future__ import annotations

from rich.text import Text

from cli import exits
from cli.etcd_verbs import reached
from cli.etcd_view import print_view, told
from cli.output import errors
from cli.specs import checked
from cli.status import Asked, Look, Looked


def section(cluster: str, asked: Asked) -> Look:
    one = checked(cluster)
    from operations.etcds.look import View, findings, look, reach

    access = reached(one, quiet=True)

    def show(views: list[View], found: list[str]) -> None:
        for view in views:
            print_view(view)
        for line in found:
            errors.print(Text(line, style="yellow"))

    def seen() -> Looked:
        views = [look(reach(one, access, role)) for role in ("main", "events")]
        found = [line for view in views for line in findings(view)]
        etcds = {view.etcd.role: told(view) for view in views}
        document = {"cluster": one.name, "etcds": etcds, "findings": found}
        return Looked(exits.FAILED if found else exits.DONE, document, lambda: show(views, found))

    return seen
