"""`etcd recover-space` and `defragment`: make databases smaller."""

from __future__ import annotations

from cli.actions.etcd import conclude, operation_on, reached
from cli.asking import confirm, dry_run_of
from cli.output import Steps
from cli.views.etcd import as_document
from cluster.spec import Cluster, RoleName
from operations.etcds import look as looking
from operations.etcds import space


def recover(cluster: Cluster, role: RoleName, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Compact and defragment an etcd that is at its quota, and clear the alarm."""
    access = reached(cluster, quiet=as_json)
    etcd = looking.reach(cluster, access, role)
    steps = Steps(space.RECOVER_STEPS, quiet=as_json)
    with operation_on(cluster, access, "recover-space", role, dry_run=dry_run) as operation:
        view = looking.read_members(etcd)
        space.refuse(view)
        if dry_run:
            sizes = ", ".join(f"{member.name} {looking.mb(status.size)}" for member, status in view.answering)
            conclude(as_json, as_document(view), (f"would compact at {view.revision} and defragment {sizes}",))
            return
        if not yes:
            question, again = "Members stop serving one after another", f"etcd recover-space {cluster.name} {role}"
            confirm(f"{question}, for seconds per GB. Continue?", again, see=dry_run_of(again))
        after = space.recover(view, operation, steps.step, steps.detail)
        sizes = ", ".join(f"{member.name} {looking.mb(status.size)}" for member, status in after.answering)
        conclude(as_json, as_document(after), (f"etcd {role} accepts writes again: {sizes}",))


def defragment(cluster: Cluster, role: RoleName, *, force: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Defragment members with space to gain, one at a time. force: all members."""
    access = reached(cluster, quiet=as_json)
    etcd = looking.reach(cluster, access, role)
    steps = Steps(space.DEFRAGMENT_STEPS, quiet=as_json)
    with operation_on(cluster, access, "defragment", role, dry_run=dry_run) as operation:
        view = looking.read_members(etcd)
        names = tuple(member.name for member in view.members) if force else space.worth(view)
        if not names:
            conclude(as_json, as_document(view), (f"etcd {role}: no member has 30 % free; nothing to do",))
            return
        space.refuse(view)
        if dry_run:
            conclude(as_json, as_document(view), (f"would defragment {', '.join(names)}",))
            return
        if not yes:
            question, again = f"Defragment {', '.join(names)}?", f"etcd defragment {cluster.name} {role}"
            confirm(f"{question} Each stops serving meanwhile, for seconds per GB.", again, see=dry_run_of(again))
        after = space.defragment(view, names, operation, steps.step, steps.detail)
        conclude(as_json, as_document(after), (f"defragmented {', '.join(names)}",))
