"""`etcd replace` and `move-leader`, for one member; `forget`, for data that members set aside."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.asking import confirm, dry_run_of
from cli.etcd_verbs import MemberArg, RoleArg, conclude, known_member, operation_on, reached
from cli.etcd_view import as_document
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples, seconds
from cli.output import Steps
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
    from operations.etcds import replace as verb
    from operations.etcds.look import reach, read_members

    access = reached(loaded, quiet=as_json)
    etcd = reach(loaded, access, role)
    known_member(etcd.member, member)
    steps = Steps(verb.STEPS, quiet=as_json)
    with operation_on(loaded, access, "replace", f"{role} {member}", dry_run=dry_run) as operation:
        view = read_members(etcd)
        if not operation.has("begun"):
            verb.refuse(view, member, although_healthy=although_healthy)
        if dry_run:
            conclude(as_json, {"member": member}, (f"would replace {member}: it joins without data",))
            return
        if not yes and not operation.has("begun"):
            again = f"etcd replace {loaded.name} {role} {member}"
            question = f"Replace {member}? The data on its disk is set aside."
            confirm(question, again, see=dry_run_of(again), as_json=as_json)
        after = verb.replace(view, member, operation, steps.step, steps.detail)
        token = operation.facts["token"]
        lines = (
            f"{member} is a member again; its former data is set aside on its host",
            f"to delete that data when all is healthy: {etcd.command('forget')} --token {token}",
        )
        conclude(as_json, as_document(after), lines)


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
    from operations.etcds import leader
    from operations.etcds.look import reach, read_members

    access = reached(loaded, quiet=as_json)
    etcd = reach(loaded, access, role)
    known_member(etcd.member, to)
    with operation_on(loaded, access, "move-leader", f"{role} {to}", dry_run=dry_run):
        conclude(as_json, {"leader": to}, (leader.move(read_members(etcd), to, only_look=dry_run),))


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
    from operations.etcds import aside
    from operations.etcds.look import of_all, reach

    if bool(token) == (older_than is not None):
        raise typer.BadParameter("give --token or --older-than")
    access = reached(loaded, quiet=as_json)
    etcd = reach(loaded, access, role)
    about = f"--token {token}" if token else f"--older-than {older_than:.0f}"
    again = f"etcd forget {loaded.name} {role} {about}"
    if dry_run or not (yes or as_json):
        folders = aside.folders_aside(etcd, token, older_than)
        lines = _folders(folders)
        if dry_run:
            conclude(as_json, {"would_forget": folders}, tuple(f"would delete on {line}" for line in lines))
            return
        confirm(f"Delete permanently? {'; '.join(lines)}.", again, see=dry_run_of(again))
    selection: dict[str, Any] = {"token": token} if token else {"older_than_s": older_than}
    with operation_on(loaded, access, "forget", f"{role} {about}", dry_run=False):
        deleted = of_all(etcd, lambda agent: agent.act("forget", **selection)["forgotten"])
    conclude(as_json, {"forgotten": deleted}, _folders(deleted))


def _folders(by_member: dict[str, list[str]]) -> tuple[str, ...]:
    return tuple(f"{member}: {', '.join(names) or 'nothing'}" for member, names in by_member.items())
