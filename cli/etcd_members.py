"""`etcd replace` and `move-leader`, about one member; `forget`, of what members keep aside."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.asking import confirm, dry_run_of
from cli.etcd_verbs import MemberArg, RoleArg, conclude, known_member, operation_on, reached
from cli.etcd_view import told
from cli.options import ClusterArg, DryOpt, JsonOpt, SureOpt, WithoutRecordOpt, examples, seconds
from cli.output import Steps

REPLACE_EXAMPLES = examples(
    ("etcd replace jaguar main etcd-main-2 --dry-run", "may it be?"),
    ("etcd replace jaguar main etcd-main-2", "asks"),
)
MOVE_EXAMPLES = examples(("etcd move-leader jaguar main etcd-main-2", "it leads then"))
FORGET_EXAMPLES = examples(
    ("etcd forget jaguar main --token restore-1a2b3c4d", "of one operation"),
    ("etcd forget jaguar main --older-than 7d", "what is so old"),
)


def replace(
    cluster: ClusterArg,
    role: RoleArg,
    member: MemberArg,
    although_healthy: Annotated[
        bool, typer.Option("--although-healthy", help="Also a member that works: its data is set aside.")
    ] = False,
    without_record: WithoutRecordOpt = False,
    dry_run: DryOpt = False,
    yes: SureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Have a member that is dead, or lost its disk, join anew with nothing.

    Removed first, then added as a learner, which has no vote until it has all
    data. Refused without a quorum, and while another member ails.
    Cut short, it goes on when it is run again.
    """
    from operations.etcds import replace as verb
    from operations.etcds.look import look, reach

    one, access = reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    known_member(etcd.member, member)
    steps = Steps(verb.STEPS, quiet=as_json)
    with operation_on(
        one, access, "replace", f"{role} {member}", dry_run=dry_run, without_record=without_record
    ) as operation:
        view = look(etcd)
        if not operation.has("begun"):
            verb.refuse(view, member, although_healthy=although_healthy)
        if dry_run:
            conclude(as_json, {"member": member}, (f"would replace {member}: it joins with nothing",))
            return
        if not yes and not operation.has("begun"):
            again = f"etcd replace {one.name} {role} {member}"
            question = f"Replace {member}? What is on its disk is set aside."
            confirm(question, again, see=dry_run_of(again), as_json=as_json)
        after = verb.replace(view, member, operation, steps.step, steps.detail)
        token = operation.facts["token"]
        kept = (
            f"{member} is a member again; what it had is kept aside on its host",
            f"to remove it, once all is well: {etcd.command('forget')} --token {token}",
        )
        conclude(as_json, told(after), kept)


def move_leader(
    cluster: ClusterArg, role: RoleArg, to: MemberArg, dry_run: DryOpt = False, as_json: JsonOpt = False
) -> None:
    """Have a member lead: before work on the host of the present leader, or nearer to its clients."""
    from operations.etcds import leader
    from operations.etcds.look import look, reach

    one, access = reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    known_member(etcd.member, to)
    with operation_on(one, access, "move-leader", f"{role} {to}", dry_run=dry_run):
        conclude(as_json, {"leader": to}, (leader.move(look(etcd), to, only_look=dry_run),))


def forget(
    cluster: ClusterArg,
    role: RoleArg,
    token: Annotated[str, typer.Option("--token", metavar="TOKEN", help="As the verb that kept them told it.")] = "",
    older_than: Annotated[str, typer.Option("--older-than", metavar="TIME", help="As 7d, 12h; 0s for all.")] = "",
    as_json: JsonOpt = False,
) -> None:
    """Remove the folders that restore and replace have kept aside on the hosts; nothing that is in use."""
    from operations.etcds.look import of_all, reach

    if bool(token) == bool(older_than):
        raise typer.BadParameter("give --token or --older-than")
    one, access = reached(cluster, quiet=as_json)
    what: dict[str, Any] = {"token": token} if token else {"older_than_s": seconds(older_than, "--older-than")}
    with operation_on(
        one,
        access,
        "forget",
        f"{role} --token {token}" if token else f"{role} --older-than {older_than}",
        dry_run=False,
    ):
        gone = of_all(reach(one, access, role), lambda agent: agent.act("forget", **what)["forgotten"])
    lines = tuple(f"{member}: {', '.join(names) or 'nothing'}" for member, names in gone.items())
    conclude(as_json, {"forgotten": gone}, lines)
