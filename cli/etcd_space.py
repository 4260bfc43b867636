"""`etcd recover-space` and `defragment`: databases made smaller."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking import confirm, dry_run_of
from cli.etcd_verbs import RoleArg, conclude, operation_on, reached
from cli.etcd_view import told
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Steps
from cli.specs import checked


@examples(
    ("etcd recover-space jaguar events --dry-run", "only look"),
    ("etcd recover-space jaguar events", "compacts, defragments; asks"),
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

    Compacts the history of keys, defragments members one after another, the leader
    last, and clears the alarm. Idempotent: if interrupted, run it again.
    """
    one = checked(cluster)
    from operations.etcds import space
    from operations.etcds.look import look, mb, reach

    access = reached(one, quiet=as_json)
    etcd = reach(one, access, role)
    steps = Steps(space.RECOVER_STEPS, quiet=as_json)
    with operation_on(one, access, "recover-space", role, dry_run=dry_run) as operation:
        view = look(etcd)
        space.refuse(view)
        if dry_run:
            sizes = ", ".join(f"{each.name} {mb(status.size)}" for each, status in view.answering)
            conclude(as_json, told(view), (f"would compact at {view.revision} and defragment {sizes}",))
            return
        if not (yes or as_json):
            question, again = "Members stop serving one after another", f"etcd recover-space {one.name} {role}"
            confirm(f"{question}, seconds for each GB. Go on?", again, see=dry_run_of(again))
        after = space.recover(view, operation, steps.step, steps.detail)
        sizes = ", ".join(f"{each.name} {mb(status.size)}" for each, status in after.answering)
        conclude(as_json, told(after), (f"etcd {role} takes writes again: {sizes}",))


@examples(
    ("etcd defragment jaguar main", "where it is worth it; asks"),
    ("etcd defragment jaguar main --force", "all members"),
)
@holds()
def defragment(
    cluster: ClusterArg,
    role: RoleArg,
    force: Annotated[bool, typer.Option("--force", help="Also members with little to gain.")] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Return space that databases no longer use to the disks.

    Takes members with more than 30 % of their database free, one after another, the
    leader last. A member serves nobody while it defragments. Compacts nothing.
    """
    one = checked(cluster)
    from operations.etcds import space
    from operations.etcds.look import look, reach

    access = reached(one, quiet=as_json)
    etcd = reach(one, access, role)
    steps = Steps(space.DEFRAGMENT_STEPS, quiet=as_json)
    with operation_on(one, access, "defragment", role, dry_run=dry_run) as operation:
        view = look(etcd)
        names = tuple(each.name for each in view.seen) if force else space.worth(view)
        if not names:
            conclude(as_json, told(view), (f"etcd {role}: no member has 30 % free; nothing to do",))
            return
        space.refuse(view)
        if dry_run:
            conclude(as_json, told(view), (f"would defragment {', '.join(names)}",))
            return
        if not (yes or as_json):
            question, again = f"Defragment {', '.join(names)}?", f"etcd defragment {one.name} {role}"
            confirm(f"{question} Each serves nobody meanwhile, seconds for each GB.", again, see=dry_run_of(again))
        after = space.defragment(view, names, operation, steps.step, steps.detail)
        conclude(as_json, told(after), (f"defragmented {', '.join(names)}",))
