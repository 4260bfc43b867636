"""`status CLUSTER etcd`: the state of every member."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from cli import exits
from cli.actions.etcd import reached
from cli.output import errors
from cli.sections import Look, Options, Report
from cli.views.etcd import as_document, print_view
from cluster.spec import Cluster
from operations.etcds import look as looking
from operations.etcds.look import EtcdView, findings


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    access = reached(cluster, quiet=True)

    def show(views: list[EtcdView], problems: list[str]) -> None:
        for view in views:
            print_view(view)
        for line in problems:
            errors.print(Text(line, style="yellow"))

    def look_once() -> Report:
        views = [looking.read_members(looking.reach(cluster, access, role)) for role in ("main", "events")]
        problems = [line for view in views for line in findings(view)]
        etcds = {view.etcd.role: as_document(view) for view in views}
        document = {"cluster": cluster.name, "etcds": etcds, "findings": problems}
        return Report(exits.FAILED if problems else exits.DONE, document, lambda: show(views, problems))

    return look_once
