"""Arguments of the verbs for etcds."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.spec import RoleName

RoleArg = Annotated[RoleName, typer.Argument(metavar="ETCD", help="main or events.")]
EitherRoleArg = Annotated[
    RoleName | None, typer.Argument(metavar="ETCD", help="main or events. Default: both.", show_default=False)
]
MemberArg = Annotated[str, typer.Argument(metavar="MEMBER", help="Name of a member, such as etcd-main-2.")]
