"""What the verbs for etcds share: arguments, access to the cluster, the operation, and the result."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.holding import hold
from cli.output import Steps, console, print_json
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from clients.access import Access
    from operations.record.journal import Journal

RoleArg = Annotated[RoleName, typer.Argument(metavar="ETCD", help="main or events.")]
EitherRoleArg = Annotated[
    RoleName | None, typer.Argument(metavar="ETCD", help="main or events. Default: both.", show_default=False)
]
MemberArg = Annotated[str, typer.Argument(metavar="MEMBER", help="Name of a member, such as etcd-main-2.")]


def reached(cluster: Cluster, *, quiet: bool) -> Access:
    from operations import stack

    steps = Steps(("cluster",), quiet=quiet)
    with steps.step("cluster"):
        return stack.access_to(cluster, steps.detail)


def operation_on(
    cluster: Cluster, access: Access, verb: str, about: str, *, dry_run: bool
) -> AbstractContextManager[Journal]:
    from operations.record.journal import Unrecorded

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
