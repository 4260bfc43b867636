"""`etcd`: look at the etcds of a cluster, and mend them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli import backups, etcd_roll
from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.etcd_view import print_view, told
from cli.options import ClusterArg, DryOpt, JsonOpt, SureOpt, WithoutRecordOpt, YesOpt, examples, seconds
from cli.output import Steps, console, errors, note, print_json
from cli.specs import checked
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from operations.access import Access
    from operations.etcds.snapshots import Snapshot
    from operations.record.journal import Journal

app = typer.Typer(
    help="Look at etcds and mend them. docs/etcd.md says which verb helps when.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(epilog=backups.EXAMPLES)(backups.backups)
app.command(epilog=backups.MAKE_EXAMPLES)(backups.backup)
app.command(epilog=etcd_roll.EXAMPLES)(etcd_roll.roll)

RoleArg = Annotated[RoleName, typer.Argument(metavar="ETCD", help="main or events.")]
MemberArg = Annotated[str, typer.Argument(metavar="MEMBER", help="Its name, as etcd-main-2.")]


@app.command(
    epilog=examples(
        ("etcd state jaguar", "all members of both"), ("etcd state jaguar --json", "with all that is known")
    )
)
def state(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show every member: who leads, revisions, sizes, disks, alarms. Reads only.

    Says under the table what is not as it should be, and the command that helps.
    Exit 1 when something is not.
    """
    from operations.etcds.look import findings, look, reach

    one, access = _reached(cluster, quiet=as_json)
    views = [look(reach(one, access, role)) for role in ("main", "events")]
    found = [line for view in views for line in findings(view)]
    if as_json:
        print_json({"cluster": one.name, "etcds": {view.etcd.role: told(view) for view in views}, "findings": found})
    else:
        for view in views:
            print_view(view)
        for line in found:
            errors.print(Text(line, style="yellow"))
    raise typer.Exit(1 if found else 0)


@app.command(
    epilog=examples(
        ("etcd restore jaguar main --dry-run", "what would be lost?"),
        ("etcd restore jaguar main", "the newest good; asks"),
        ("etcd restore jaguar main --snapshot 4f1c", "one by its id"),
        ("etcd restore jaguar main --file main.db", "facts in main.db.json"),
        ("etcd restore jaguar events --to-empty", "events may be lost"),
    )
)
def restore(
    cluster: ClusterArg,
    role: RoleArg,
    snapshot: Annotated[str, typer.Option("--snapshot", metavar="ID", help="Or how its id begins.")] = "",
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A snapshot on this machine.")] = None,
    no_facts: Annotated[bool, typer.Option("--no-facts", help="Take a FILE that nothing is known of.")] = False,
    to_empty: Annotated[bool, typer.Option("--to-empty", help="To an etcd without a key; only events.")] = False,
    accept_stale: Annotated[bool, typer.Option("--accept-stale", help="Take one that is older than 24 h.")] = False,
    without_record: WithoutRecordOpt = False,
    dry_run: DryOpt = False,
    yes: SureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Put all members of an etcd back to a snapshot. Stops them meanwhile.

    Fetched, checked and prepared on every host first, while they serve. Then
    says what will be lost and asks. What the members had is kept on their disks.
    Cut short, it goes on when it is run again.
    """
    from operations.etcds import restore as verb
    from operations.etcds.look import look, reach

    one, access = _reached(cluster, quiet=as_json)
    known = _snapshots(one, access, role, needed=not (file or to_empty))
    etcd, now = reach(one, access, role), verb.utc_now()
    steps = Steps(verb.STEPS, quiet=as_json)
    with _operation(one, access, "restore", role, dry_run=dry_run, without_record=without_record) as operation:
        begun = operation.facts["snapshot"] if operation.has("swapping") else ""
        chosen = _chosen(role, snapshot or begun, file, known, no_facts, to_empty)
        made = verb.plan(look(etcd), chosen, known, operation, now, accept_stale=accept_stale)
        for line in made.warnings:
            errors.print(Text(line, style="yellow"))
        lost = made.lost(now)
        if dry_run:
            _conclude(as_json, {"snapshot": made.chosen}, (f"would restore {made.chosen}: {lost}",))
            return
        again = f"etcd restore {one.name} {role}"
        if not yes:
            refuse_unasked(again, to=f"restore {made.chosen}", see=dry_run_of(again), as_json=as_json)
        verb.bring_beside(made, operation, steps.step, steps.detail)
        if not yes and not operation.has("swapping"):
            confirm(
                f"Restore {made.chosen}? {lost}, and the etcd stops for it.", again, stopped="what runs was not touched"
            )
        view = verb.change_over(made, operation, steps.step, steps.detail)
        _conclude(as_json, {"snapshot": made.chosen, **told(view)}, verb.told(made, operation, view))


@app.command(
    epilog=examples(
        ("etcd replace jaguar main etcd-main-2 --dry-run", "may it be?"),
        ("etcd replace jaguar main etcd-main-2", "asks"),
    )
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

    one, access = _reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    _known_member(etcd.member, member)
    steps = Steps(verb.STEPS, quiet=as_json)
    with _operation(
        one, access, "replace", f"{role} {member}", dry_run=dry_run, without_record=without_record
    ) as operation:
        view = look(etcd)
        if not operation.has("begun"):
            verb.refuse(view, member, although_healthy=although_healthy)
        if dry_run:
            _conclude(as_json, {"member": member}, (f"would replace {member}: it joins with nothing",))
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
        _conclude(as_json, told(after), kept)


@app.command("recover-space", epilog=examples(("etcd recover-space jaguar events", "compact, defragment, disarm")))
def recover_space(
    cluster: ClusterArg,
    role: RoleArg,
    without_record: WithoutRecordOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Bring an etcd that is at its quota back to taking writes.

    Drops what keys were before now, has members write their databases anew, one
    after another and the leader last, and takes the alarm back.
    Cut short, it goes on when it is run again.
    """
    from operations.etcds import space
    from operations.etcds.look import look, mb, reach

    one, access = _reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    steps = Steps(space.RECOVER_STEPS, quiet=as_json)
    with _operation(one, access, "recover-space", role, dry_run=dry_run, without_record=without_record) as operation:
        view = look(etcd)
        space.refuse(view)
        if dry_run:
            sizes = ", ".join(f"{each.name} {mb(status.size)}" for each, status in view.answering)
            _conclude(as_json, told(view), (f"would compact at {view.revision} and defragment {sizes}",))
            return
        if not (yes or as_json):
            question, again = "Members stop serving one after another", f"etcd recover-space {one.name} {role}"
            confirm(f"{question}, seconds for each GB. Go on?", again, see=dry_run_of(again))
        after = space.recover(view, operation, steps.step, steps.detail)
        sizes = ", ".join(f"{each.name} {mb(status.size)}" for each, status in after.answering)
        _conclude(as_json, told(after), (f"etcd {role} takes writes again: {sizes}",))


@app.command(
    epilog=examples(
        ("etcd defragment jaguar main", "members where it is worth it"),
        ("etcd defragment jaguar main --force", "all members"),
    )
)
def defragment(
    cluster: ClusterArg,
    role: RoleArg,
    force: Annotated[bool, typer.Option("--force", help="Also members that it brings little.")] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Give the space that databases no longer use back to their disks.

    Members of whose database more than 30 % is free, one after another, the
    leader last. Each serves nobody meanwhile. Compacts nothing.
    """
    from operations.etcds import space
    from operations.etcds.look import look, reach

    one, access = _reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    steps = Steps(space.DEFRAGMENT_STEPS, quiet=as_json)
    with _operation(one, access, "defragment", role, dry_run=dry_run) as operation:
        view = look(etcd)
        names = tuple(each.name for each in view.seen) if force else space.worth(view)
        if not names:
            _conclude(as_json, told(view), (f"etcd {role}: no member has 30 % free; nothing to do",))
            return
        space.refuse(view)
        if dry_run:
            _conclude(as_json, told(view), (f"would defragment {', '.join(names)}",))
            return
        if not (yes or as_json):
            question, again = f"Defragment {', '.join(names)}?", f"etcd defragment {one.name} {role}"
            confirm(f"{question} Each serves nobody meanwhile, seconds for each GB.", again, see=dry_run_of(again))
        after = space.defragment(view, names, operation, steps.step, steps.detail)
        _conclude(as_json, told(after), (f"defragmented {', '.join(names)}",))


@app.command("move-leader", epilog=examples(("etcd move-leader jaguar main etcd-main-2", "it leads then")))
def move_leader(
    cluster: ClusterArg, role: RoleArg, to: MemberArg, dry_run: DryOpt = False, as_json: JsonOpt = False
) -> None:
    """Have a member lead: before work on the host of the present leader, or nearer to its clients."""
    from operations.etcds import leader
    from operations.etcds.look import look, reach

    one, access = _reached(cluster, quiet=as_json)
    etcd = reach(one, access, role)
    _known_member(etcd.member, to)
    with _operation(one, access, "move-leader", f"{role} {to}", dry_run=dry_run):
        _conclude(as_json, {"leader": to}, (leader.move(look(etcd), to, only_look=dry_run),))


@app.command(
    epilog=examples(
        ("etcd forget jaguar main --token restore-1a2b3c4d", "of one operation"),
        ("etcd forget jaguar main --older-than 7d", "what is so old"),
    )
)
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
    one, access = _reached(cluster, quiet=as_json)
    what: dict[str, Any] = {"token": token} if token else {"older_than_s": seconds(older_than, "--older-than")}
    with _operation(
        one,
        access,
        "forget",
        f"{role} --token {token}" if token else f"{role} --older-than {older_than}",
        dry_run=False,
    ):
        gone = of_all(reach(one, access, role), lambda agent: agent.act("forget", **what)["forgotten"])
    lines = tuple(f"{member}: {', '.join(names) or 'nothing'}" for member, names in gone.items())
    _conclude(as_json, {"forgotten": gone}, lines)


def _reached(name: str, *, quiet: bool) -> tuple[Cluster, Access]:
    from operations import stack

    one = checked(name)
    steps = Steps(("cluster",), quiet=quiet)
    with steps.step("cluster"):
        return one, stack.access_to(one, steps.detail)


def _operation(
    cluster: Cluster, access: Access, verb: str, about: str, *, dry_run: bool, without_record: bool = False
) -> AbstractContextManager[Journal]:
    from operations.record import one_operation
    from operations.record.journal import Unrecorded

    if dry_run:
        return nullcontext(Unrecorded())
    return one_operation(cluster, access, f"etcd {verb}", about, without_record=without_record, report=note)


def _snapshots(cluster: Cluster, access: Access, role: RoleName, *, needed: bool) -> tuple[Snapshot, ...]:
    """Those of the bucket. needed: whether it is an error that it can't be read."""
    from etcd.host.menagerie_etcd.repository import RepositoryError
    from operations.backups import NoBackupsError, snapshots

    try:
        return snapshots(cluster, access, role)
    except (NoBackupsError, RepositoryError) as error:
        if needed:
            raise
        note(f"no backup is compared with: {error}")
        return ()


def _chosen(
    role: RoleName, snapshot: str, file: Path | None, known: tuple[Snapshot, ...], no_facts: bool, to_empty: bool
) -> Snapshot | None:
    from operations.etcds.restore import EMPTY
    from operations.etcds.snapshots import choose, from_file

    if to_empty or snapshot == EMPTY:
        if role != "events":
            raise typer.BadParameter("--to-empty is for events: main holds every object of the cluster")
        return None
    if file:
        return from_file(file, role, no_facts=no_facts)
    return choose(known, snapshot)


def _known_member(find: Any, name: str) -> None:
    try:
        find(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _conclude(as_json: bool, document: dict[str, Any], lines: tuple[str, ...]) -> None:
    if as_json:
        print_json({**document, "told": lines})
        return
    for line in lines:
        console.print(line, markup=False)
