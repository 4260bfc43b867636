"""`etcd recover-space` and `defragment`: make databases smaller."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking import confirm, dry_run_of
from cli.etcd_verbs import RoleArg, conclude, operation_on, reached
from cli.etcd_view import as_document
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Steps
from cli.specs import checked


@examples(
    ("etcd recover-space jaguar events --dry-run", "show sizes"),
    ("etcd recover-space jaguar events", "ask, compact, defragment"),
)
@holds()
def recover_space(
    cluster: ClusterArg,
    role: RoleArg,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Recover an etcd that is at its quota, so that it accepts writes again.

    Compacts the history of keys, defragments one member at a time, the leader
    last, and clears the alarm. Idempotent: if interrupted, run it again.
    """
    loaded = checked(cluster)
    from operations.etcds import space
    from operations.etcds.look import mb, reach, read_members

    access = reached(loaded, quiet=as_json)
    etcd = reach(loaded, access, role)
    steps = Steps(space.RECOVER_STEPS, quiet=as_json)
    with operation_on(loaded, access, "recover-space", role, dry_run=dry_run) as operation:
        view = read_members(etcd)
        space.refuse(view)
        if dry_run:
            sizes = ", ".join(f"{member.name} {mb(status.size)}" for member, status in view.answering)
            conclude(as_json, as_document(view), (f"would compact at {view.revision} and defragment {sizes}",))
            return
        if not (yes or as_json):
            question, again = "Members stop serving one after another", f"etcd recover-space {loaded.name} {role}"
            confirm(f"{question}, for seconds per GB. Continue?", again, see=dry_run_of(again))
        after = space.recover(view, operation, steps.step, steps.detail)
        sizes = ", ".join(f"{member.name} {mb(status.size)}" for member, status in after.answering)
        conclude(as_json, as_document(after), (f"etcd {role} accepts writes again: {sizes}",))


@examples(
    ("etcd defragment jaguar main", "members with space to gain"),
    ("etcd defragment jaguar main --force", "all members"),
)
@holds()
def defragment(
    cluster: ClusterArg,
    role: RoleArg,
    force: Annotated[bool, typer.Option("--force", help="Include members with little space to gain.")] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Return free space in databases to the disks.

    Defragments members with more than 30 % of their database free, one at a time,
    the leader last. A member does not serve while it defragments. Compacts
    nothing.
    """
    loaded = checked(cluster)
    from operations.etcds import space
    from operations.etcds.look import reach, read_members

    access = reached(loaded, quiet=as_json)
    etcd = reach(loaded, access, role)
    steps = Steps(space.DEFRAGMENT_STEPS, quiet=as_json)
    with operation_on(loaded, access, "defragment", role, dry_run=dry_run) as operation:
        view = read_members(etcd)
        names = tuple(member.name for member in view.members) if force else space.worth(view)
        if not names:
            conclude(as_json, as_document(view), (f"etcd {role}: no member has 30 % free; nothing to do",))
            return
        space.refuse(view)
        if dry_run:
            conclude(as_json, as_document(view), (f"would defragment {', '.join(names)}",))
            return
        if not (yes or as_json):
            question, again = f"Defragment {', '.join(names)}?", f"etcd defragment {loaded.name} {role}"
            confirm(f"{question} Each stops serving meanwhile, for seconds per GB.", again, see=dry_run_of(again))
        after = space.defragment(view, names, operation, steps.step, steps.detail)
        conclude(as_json, as_document(after), (f"defragmented {', '.join(names)}",))
