"""What the verbs for etcds share: access to the cluster, the operation, and the result."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import typer

from cli.actions.holding import hold
from cli.output import Steps, console, print_json
from clients.access import Access
from cluster.spec import Cluster
from operations import stack
from operations.record.journal import Journal, Unrecorded


def reached(cluster: Cluster, *, quiet: bool) -> Access:
    steps = Steps(("cluster",), quiet=quiet)
    with steps.step("cluster"):
        return stack.access_to(cluster, steps.detail)


def operation_on(
    cluster: Cluster, access: Access, verb: str, about: str, *, dry_run: bool
) -> AbstractContextManager[Journal]:
    if dry_run:
        return nullcontext(Unrecorded())
    return hold(cluster, access, f"etcd {verb}", about)


def known_member(find: Any, name: str) -> None:
    try:
        find(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def conclude(as_json: bool, document: dict[str, Any], lines: tuple[str, ...]) -> None:
    if as_json:
        print_json({**document, "told": lines})
        return
    for line in lines:
        console.print(line, markup=False)
