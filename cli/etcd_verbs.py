"""What the verbs on etcds share: their arguments, the way to a cluster, an operation, and how they end."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import Steps, console, note, print_json
from cli.specs import checked
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from clients.access import Access
    from operations.record.journal import Journal

RoleArg = Annotated[RoleName, typer.Argument(metavar="ETCD", help="main or events.")]
MemberArg = Annotated[str, typer.Argument(metavar="MEMBER", help="Its name, as etcd-main-2.")]


def reached(name: str, *, quiet: bool) -> tuple[Cluster, Access]:
    from operations import stack

    one = checked(name)
    steps = Steps(("cluster",), quiet=quiet)
    with steps.step("cluster"):
        return one, stack.access_to(one, steps.detail)


def operation_on(
    cluster: Cluster, access: Access, verb: str, about: str, *, dry_run: bool, without_record: bool = False
) -> AbstractContextManager[Journal]:
    from operations.record import one_operation
    from operations.record.journal import Unrecorded

    if dry_run:
        return nullcontext(Unrecorded())
    return one_operation(cluster, access, f"etcd {verb}", about, without_record=without_record, report=note)


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
