"""Take the hosts of members to another payload while the cluster runs: one after another, leaders last.

Whatever an earlier run came to is seen at the hosts themselves, so a run that was cut short, and one with the former
payloads again, are runs like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clients.agent_client import AgentError
from clients.etcd_client import EtcdError
from clients.waiting import wait_until
from cluster.errors import FailedError, TimedOutError
from operations.etcds import leader
from operations.etcds.look import Etcd, View, look, lost_quorum
from operations.etcds.payloads import Host, as_config, differences, etcd_version, hindrances, hosts
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

BACK_S = 300
"""For a member to serve again and to have caught up, after its host has become the other payload."""
_RULE = "etcd goes up one minor release at a time"
_BACK = (
    'etcd goes back one minor release at a time, and only after "etcdctl downgrade enable"; '
    'docs/how-to/etcd-roll.md, "Go back to an older etcd", has the steps'
)


@dataclass(frozen=True)
class Change:
    """A host that is to become another payload. differences: phrases, where both payloads can be read."""

    host: Host
    differences: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host.name,
            "members": [each.name for each in self.host.seen],
            "runs": self.host.running.get("sha256", ""),
            "wanted": self.host.wanted,
            "half_way": self.host.is_half_way,
            "differences": list(self.differences),
        }


@dataclass(frozen=True)
class Plan:
    """What a roll would do, in its order. views: of all etcds, as they were."""

    cluster: str
    roles: tuple[str, ...]
    views: tuple[View, ...]
    changes: tuple[Change, ...]

    @property
    def command(self) -> str:
        of_one = f" {self.roles[0]}" if len(self.roles) == 1 else ""
        return f"./menagerie etcd roll {self.cluster}{of_one}"


def plan(
    cluster: str, views: Sequence[View], texts: Mapping[str, str], roles: Sequence[str], stale: Callable[[], str]
) -> Plan:
    """The roll of the hosts with members of `roles`, or EtcdRefusedError with all that stands in its way. Touches nothing.

    views: of all etcds. texts: as `hosts` takes them. stale: why there is no fresh backup of main, "" where there is one.
    """
    all_hosts = hosts(views, texts)
    chosen = [host for host in all_hosts if any(each.member in _members(views, roles) for each in host.seen)]
    todo = [host for host in chosen if not host.is_done]
    found = [*_silent(cluster, chosen), *_ailing(views, all_hosts, todo)]
    changes = []
    for host in () if found else sorted(todo, key=_turn):
        now, then = _payload(host), as_config(host.text)
        found += [f"{host.name}: {why}" for why in hindrances(now, then)]
        changes.append(Change(host, tuple(differences(now, then))))
    found += [] if found else _versions(views, todo)
    if todo and "main" in {each.etcd.role for each in views if _on(each, todo)} and (why := stale()):
        found.append(why)
    if found:
        raise EtcdRefusedError("nothing was changed:\n  " + "\n  ".join(found))
    return Plan(cluster, tuple(roles), tuple(views), tuple(changes))


def _members(views: Sequence[View], roles: Sequence[str]) -> list[object]:
    return [each.member for view in views if view.etcd.role in roles for each in view.seen]


def _on(view: View, chosen: Sequence[Host]) -> bool:
    return bool({each.member.host for each in view.seen} & {host.name for host in chosen})


def _turn(host: Host) -> tuple[bool, ...]:
    """What ails or is half way first: that is mended by going on. Then events, and leaders last, main's above all."""
    main = any(_is_main(each.name) for each in host.seen)
    return (host.is_well, not host.is_half_way, main, any(map(_is_main, host.leads)), bool(host.leads))


def _is_main(member: str) -> bool:
    return member.startswith("etcd-main-")


def _silent(cluster: str, chosen: Sequence[Host]) -> Iterator[str]:
    for host in chosen:
        error = next((each.agent_error for each in host.seen if each.agent_error), "")
        if error:
            yield f"{error}; docs/runbooks/etcd-agent-silent.md"
        elif not host.text:
            yield f"nothing says what {host.name} is to be; run: ./menagerie up {cluster}"
        elif not host.running:
            yield (
                f"{host.name} was made before hosts took another payload while they run: make its machine anew once, one at a "
                'time; docs/how-to/etcd-roll.md, "Recreate a host"'
            )


def _ailing(views: Sequence[View], everyone: Sequence[Host], todo: Sequence[Host]) -> Iterator[str]:
    """One host may ail if it is to be rolled: that is how it is mended."""
    for view in views:
        if not _on(view, todo):
            continue
        etcd = view.etcd
        if not view.has_quorum:
            yield lost_quorum(view)
        if "CORRUPT" in view.alarms:
            yield f"etcd {etcd.role}: CORRUPT alarm; see {etcd.command('state')}"
        if learning := [each.name for each, status in view.answering if status.learner]:
            yield f"etcd {etcd.role}: {', '.join(learning)} has no vote yet; see {etcd.command('state')}"
        if held := [each.name for each in view.seen if each.agent.get("held")]:
            yield f"etcd {etcd.role}: {', '.join(held)} was stopped by a verb that was not finished: run that again"
    ailing = [host for host in everyone if not host.is_well]
    if todo and (len(ailing) > 1 or any(host.name not in {each.name for each in todo} for host in ailing)):
        for host in ailing:
            told = "; ".join(f"{each.name}: {each.ailment}" for each in host.seen if each.ailment)
            yield f"not all members are healthy ({told}); see ./menagerie status {views[0].etcd.cluster.name} etcd"


def _versions(views: Sequence[View], todo: Sequence[Host]) -> list[str]:
    """etcd.io, "Upgrading etcd clusters" and "Downgrading etcd clusters". The version of an etcd is that of its oldest member."""
    found = []
    for view in views:
        wanted = {etcd_version(as_config(host.text)) for host in todo if _on(view, [host])} - {""}
        allowed = {status.downgrade for _, status in view.answering}
        running = [status.version for _, status in view.answering if status.version]
        found += [
            f"etcd {view.etcd.role}: {why}" for each in sorted(wanted) if (why := version_rule(running, each, allowed))
        ]
    return found


def version_rule(running: Sequence[str], wanted: str, allowed: set[str]) -> str:
    """Why members can't go to a version, "" where they can. allowed: minor releases to which a downgrade is enabled."""
    if not running:
        return ""
    oldest, then = min(map(_minor, running)), _minor(wanted)
    if then in (oldest, (oldest[0], oldest[1] + 1)):
        return ""
    from_to = f"from {'.'.join(map(str, oldest))} to {wanted}"
    if then > oldest:
        return f"{_RULE}, and this would be {from_to}"
    if then == (oldest[0], oldest[1] - 1) and any(_minor(each) == then for each in allowed if each):
        return ""
    return f"{_BACK}; this would be {from_to}"


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def _payload(host: Host) -> dict[str, Any]:
    return host.agents[0].payload()


def roll(made: Plan, operation: Journal, step: Step, report: Report) -> tuple[View, ...]:
    """Do it; all etcds as they are then. FailedError where a host does not become its payload."""
    for change in made.changes:
        with step(change.host.name):
            try:
                _one(made, change.host, report)
            except (AgentError, EtcdError, TimedOutError, EtcdRefusedError) as error:
                raise FailedError(_way_on(made, change.host, error), code="roll-stopped") from None
            operation.done(f"host {change.host.name}", payload=change.host.wanted[:16])
    return tuple(look(view.etcd) for view in made.views)


def _one(made: Plan, host: Host, report: Report) -> None:
    etcds = [view.etcd for view in made.views if _on(view, [host])]
    for etcd in etcds:
        _hand_over(etcd, host, made, report)
    report(f"{host.name} becomes payload {host.wanted[:16]}")
    host.agents[0].apply(host.wanted, host.packed, report)
    for etcd in etcds:
        wait_until(_lagging(etcd), BACK_S, report)


def _hand_over(etcd: Etcd, host: Host, made: Plan, report: Report) -> None:
    """All others are well, and one of them leads: best one that has had its turn."""
    view = look(etcd)
    others = [each for each in view.seen if each.member.host != host.name]
    if ailing := [each for each in others if each.ailment and "alarm" not in each.ailment.lower()]:
        told = "; ".join(f"{each.name}: {each.ailment}" for each in ailing)
        raise EtcdRefusedError(f"etcd {etcd.role}: another member is not healthy ({told})")
    if view.leader is None or view.leader.member.host != host.name or not others:
        return
    names = [change.host.name for change in made.changes]
    waiting = names[names.index(host.name) :]
    chosen = min(others, key=lambda each: (each.member.host in waiting, not each.healthy, each.name))
    if chosen.healthy:  # with an alarm none is, and writes fail anyway
        report(leader.move(view, chosen.name))


def _lagging(etcd: Etcd) -> Callable[[], str]:
    """What an etcd lacks, until every member is healthy and has applied what any had when all were."""
    reached: list[int] = []

    def missing() -> str:
        view = look(etcd)
        ailing = [each for each in view.seen if each.ailment and "alarm" not in each.ailment.lower()]
        if ailing or len(view.answering) < len(view.seen):
            return "; ".join(f"{each.name}: {each.ailment}" for each in ailing) or "not every member answers"
        if not reached:
            reached.append(max(status.index for _, status in view.answering))
        behind = [each.name for each, status in view.answering if status.applied < reached[0]]
        return f"{', '.join(behind)} has not caught up to index {reached[0]}" if behind else ""

    return missing


def _way_on(made: Plan, host: Host, error: Exception) -> str:
    names = [change.host.name for change in made.changes]
    left = names[names.index(host.name) + 1 :]
    lines = [f"{host.name}: {error}", f"not begun: {', '.join(left)}" if left else "no other host is left"]
    return "\n  ".join(lines) + (
        f"\nTo go on, mend that and run: {made.command}"
        f"\nTo go back, put the former spec (or release of Menagerie) back and run: ./menagerie up {made.cluster}, then "
        f"{made.command}"
    )


def listed(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each host with what differs, for people; hosts that change alike are one line."""
    alike: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        alike.setdefault(tuple(each.replace(change.host.name, "*") for each in change.differences), []).append(change)
    for told, group in alike.items():
        yield ", ".join(change.host.name for change in group)
        yield from (f"  {line}" for line in told or ("what was begun is brought to its end",))
