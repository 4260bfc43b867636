"""`status CLUSTER etcd`: the state of every member."""

from __future__ import annotations

from rich.text import Text

from cli import exits
from cli.etcd_verbs import reached
from cli.etcd_view import as_document, print_view
from cli.output import errors
from cli.specs import checked
from cli.status import Look, Options, Report


def section(cluster: str, options: Options) -> Look:
    loaded = checked(cluster)
    from operations.etcds.look import EtcdView, findings, reach, read_members

    access = reached(loaded, quiet=True)

    def show(views: list[EtcdView], problems: list[str]) -> None:
        for view in views:
            print_view(view)
        for line in problems:
            errors.print(Text(line, style="yellow"))

    def look_once() -> Report:
        views = [read_members(reach(loaded, access, role)) for role in ("main", "events")]
        problems = [line for view in views for line in findings(view)]
        etcds = {view.etcd.role: as_document(view) for view in views}
        document = {"cluster": loaded.name, "etcds": etcds, "findings": problems}
        return Report(exits.FAILED if problems else exits.DONE, document, lambda: show(views, problems))

    return look_once
