"""`etcd replace` and `move-leader`, for one member; `forget`, for data that members set aside: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.etcd_options import MemberArg, RoleArg
from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, seconds
from cli.specs import checked


@examples(
    ("etcd replace jaguar main etcd-main-2 --dry-run", "check only"),
    ("etcd replace jaguar main etcd-main-2", "ask, then replace"),
)
@holds()
def replace(
    cluster: ClusterArg,
    role: RoleArg,
    member: MemberArg,
    although_healthy: Annotated[
        bool, typer.Option("--although-healthy", help="Allow replacing a healthy member; its data is set aside.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Replace a member that is dead or lost its disk: it joins again without data.

    The member is removed, then added as a learner, which has no vote until it has
    all data. Refused without a quorum, and while another member is unhealthy.
    Idempotent: if interrupted, run it again. With --json, --yes is needed too.
    """
    loaded = checked(cluster)
    from cli.actions import etcd_members

    etcd_members.replace(
        loaded, role, member, although_healthy=although_healthy, dry_run=dry_run, yes=yes, as_json=as_json
    )


@examples(
    ("etcd move-leader jaguar main etcd-main-2 --dry-run", "check only"),
    ("etcd move-leader jaguar main etcd-main-2", "make it the leader"),
)
@holds()
def move_leader(
    cluster: ClusterArg, role: RoleArg, to: MemberArg, dry_run: DryOpt = False, as_json: JsonOpt = False
) -> None:
    """Hand leadership to a member: before work on the leader's host, or to move it nearer to clients."""
    loaded = checked(cluster)
    from cli.actions import etcd_members

    etcd_members.move_leader(loaded, role, to, dry_run=dry_run, as_json=as_json)


@examples(
    ("etcd forget jaguar main --token restore-1a2b3c4d --dry-run", "list"),
    ("etcd forget jaguar main --token restore-1a2b3c4d", "ask, then delete"),
    ("etcd forget jaguar main --older-than 7d --yes", "everything older"),
)
@holds()
def forget(
    cluster: ClusterArg,
    role: RoleArg,
    token: Annotated[
        str, typer.Option("--token", metavar="TOKEN", help="The token that `restore` or `replace` printed.")
    ] = "",
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="SECONDS", parser=seconds, help="Age, such as 7d or 12h; 0 for all."),
    ] = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Delete the folders that restore and replace set aside on hosts. Never deletes data in use."""
    loaded = checked(cluster)
    if bool(token) == (older_than is not None):
        raise typer.BadParameter("give --token or --older-than")
    from cli.actions import etcd_members

    etcd_members.forget(loaded, role, token, older_than, dry_run=dry_run, yes=yes or as_json, as_json=as_json)
