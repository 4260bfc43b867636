"""`etcd replace` and `move-leader`, for one member; `forget`, for data that members set aside."""

from __future__ import annotations

from typing import Any

from cli.actions.etcd import conclude, known_member, operation_on, reached
from cli.asking import confirm, dry_run_of
from cli.output import Steps
from cli.views.etcd import as_document
from cluster.spec import Cluster, RoleName
from operations.etcds import aside, leader
from operations.etcds import look as looking
from operations.etcds import replace as replacing


def replace(
    cluster: Cluster,
    role: RoleName,
    member: str,
    *,
    although_healthy: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Replace a member. although_healthy: even if it is healthy."""
    access = reached(cluster, quiet=as_json)
    etcd = looking.reach(cluster, access, role)
    known_member(etcd.member, member)
    steps = Steps(replacing.STEPS, quiet=as_json)
    with operation_on(cluster, access, "replace", f"{role} {member}", dry_run=dry_run) as operation:
        view = looking.read_members(etcd)
        if not operation.has("begun"):
            replacing.refuse(view, member, although_healthy=although_healthy)
        if dry_run:
            conclude(as_json, {"member": member}, (f"would replace {member}: it joins without data",))
            return
        if not yes and not operation.has("begun"):
            again = f"etcd replace {cluster.name} {role} {member}"
            question = f"Replace {member}? The data on its disk is set aside."
            confirm(question, again, see=dry_run_of(again), as_json=as_json)
        after = replacing.replace(view, member, operation, steps.step, steps.detail)
        token = operation.facts["token"]
        lines = (
            f"{member} is a member again; its former data is set aside on its host",
            f"to delete that data when all is healthy: {etcd.command('forget')} --token {token}",
        )
        conclude(as_json, as_document(after), lines)


def move_leader(cluster: Cluster, role: RoleName, to: str, *, dry_run: bool, as_json: bool) -> None:
    """Hand leadership to a member."""
    access = reached(cluster, quiet=as_json)
    etcd = looking.reach(cluster, access, role)
    known_member(etcd.member, to)
    with operation_on(cluster, access, "move-leader", f"{role} {to}", dry_run=dry_run):
        conclude(as_json, {"leader": to}, (leader.move(looking.read_members(etcd), to, only_look=dry_run),))


def forget(
    cluster: Cluster,
    role: RoleName,
    token: str,
    older_than: float | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete what was set aside: with this token, or older than so many seconds."""
    access = reached(cluster, quiet=as_json)
    etcd = looking.reach(cluster, access, role)
    about = f"--token {token}" if token else f"--older-than {older_than:.0f}"
    again = f"etcd forget {cluster.name} {role} {about}"
    if dry_run or not yes:
        folders = aside.folders_aside(etcd, token, older_than)
        lines = _folders(folders)
        if dry_run:
            conclude(as_json, {"would_forget": folders}, tuple(f"would delete on {line}" for line in lines))
            return
        confirm(f"Delete permanently? {'; '.join(lines)}.", again, see=dry_run_of(again))
    selection: dict[str, Any] = {"token": token} if token else {"older_than_s": older_than}
    with operation_on(cluster, access, "forget", f"{role} {about}", dry_run=False):
        deleted = looking.of_all(etcd, lambda agent: agent.act("forget", **selection)["forgotten"])
    conclude(as_json, {"forgotten": deleted}, _folders(deleted))


def _folders(by_member: dict[str, list[str]]) -> tuple[str, ...]:
    return tuple(f"{member}: {', '.join(names) or 'nothing'}" for member, names in by_member.items())
