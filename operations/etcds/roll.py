"""Rolls the hosts of members to another payload while the cluster runs: one host at a time, leaders last.

The progress of an earlier run is read from the hosts. Resuming an interrupted run and rolling back to the former payloads
need no special procedure.
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
from operations.etcds.look import EtcdAccess, EtcdView, lost_quorum, read_members
from operations.etcds.payloads import EtcdHost, as_config, differences, etcd_version, hindrances, hosts
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

BACK_S = 300
"""How long to wait for a member to serve and to catch up, after its host has applied the payload."""
_RULE = "etcd can be upgraded only one minor release at a time"
_BACK = (
    'etcd can be downgraded only one minor release at a time, after "etcdctl downgrade enable"; '
    'for the steps, see docs/how-to/etcd-roll.md, "Go back to an older etcd"'
)


@dataclass(frozen=True)
class PayloadChange:
    """A host to move to another payload. differences: phrases."""

    host: EtcdHost
    differences: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host.name,
            "members": [each.name for each in self.host.members],
            "runs": self.host.running.get("sha256", ""),
            "wanted": self.host.desired_sha256,
            "half_way": self.host.is_half_way,
            "differences": list(self.differences),
        }


@dataclass(frozen=True)
class RollPlan:
    """The plan of a roll, with changes in order. views: of all etcds when it was planned."""

    cluster: str
    roles: tuple[str, ...]
    views: tuple[EtcdView, ...]
    changes: tuple[PayloadChange, ...]

    @property
    def command(self) -> str:
        of_one = f" {self.roles[0]}" if len(self.roles) == 1 else ""
        return f"./menagerie etcd roll {self.cluster}{of_one}"


def plan(
    cluster: str, views: Sequence[EtcdView], texts: Mapping[str, str], roles: Sequence[str], stale: Callable[[], str]
) -> RollPlan:
    """Plan the roll of the hosts with members of `roles`. Changes nothing. Raises EtcdRefusedError with everything that blocks it.

    views: of all etcds. texts: as for `hosts`. stale: returns why there is no recent backup of main, "" if there is one.
    """
    all_hosts = hosts(views, texts)
    chosen = [host for host in all_hosts if any(item.member in _members(views, roles) for item in host.members)]
    todo = [host for host in chosen if not host.is_done]
    problems = [*_silent(cluster, chosen), *_ailing(views, all_hosts, todo)]
    changes = []
    for host in () if problems else sorted(todo, key=_order):
        now, then = _payload(host), as_config(host.text)
        problems += [f"{host.name}: {why}" for why in hindrances(now, then)]
        changes.append(PayloadChange(host, tuple(differences(now, then))))
    problems += [] if problems else _versions(views, todo)
    if todo and "main" in {item.etcd.role for item in views if _on(item, todo)} and (why := stale()):
        problems.append(why)
    if problems:
        raise EtcdRefusedError("the roll can't start. Nothing was changed.\n  " + "\n  ".join(problems))
    return RollPlan(cluster, tuple(roles), tuple(views), tuple(changes))


def _members(views: Sequence[EtcdView], roles: Sequence[str]) -> list[object]:
    return [state.member for view in views if view.etcd.role in roles for state in view.members]


def _on(view: EtcdView, chosen: Sequence[EtcdHost]) -> bool:
    return bool({state.member.host for state in view.members} & {host.name for host in chosen})


def _order(host: EtcdHost) -> tuple[bool, ...]:
    """Return the sort key of a host: unhealthy and half-applied hosts first, because the roll fixes them; leaders last, main's
    at the very end; else events before main."""
    main = any(_is_main(state.name) for state in host.members)
    return (host.is_healthy, not host.is_half_way, main, any(map(_is_main, host.leads)), bool(host.leads))


def _is_main(member: str) -> bool:
    return member.startswith("etcd-main-")


def _silent(cluster: str, chosen: Sequence[EtcdHost]) -> Iterator[str]:
    for host in chosen:
        error = next((state.agent_error for state in host.members if state.agent_error), "")
        if error:
            yield f"{error}; docs/runbooks/etcd-agent-silent.md"
        elif not host.text:
            yield f"the stack has no payload for {host.name}; run: ./menagerie up {cluster}"
        elif not host.running:
            yield (
                f"{host.name} is too old to change its payload while it runs: recreate its machine once, one host at a "
                'time; see docs/how-to/etcd-roll.md, "Recreate a host"'
            )


def _ailing(views: Sequence[EtcdView], everyone: Sequence[EtcdHost], todo: Sequence[EtcdHost]) -> Iterator[str]:
    """Yield what is unhealthy. A single unhealthy host is accepted if it will be rolled: that can fix it."""
    for view in views:
        if not _on(view, todo):
            continue
        etcd = view.etcd
        if not view.has_quorum:
            yield lost_quorum(view)
        if "CORRUPT" in view.alarms:
            yield f"etcd {etcd.role}: CORRUPT alarm; see {etcd.status_command}"
        if learning := [state.name for state, status in view.answering if status.learner]:
            yield f"etcd {etcd.role}: {', '.join(learning)} has no vote yet; see {etcd.status_command}"
        if held := [state.name for state in view.members if state.agent.get("held")]:
            yield f"etcd {etcd.role}: {', '.join(held)} was stopped by a verb that did not finish: run that verb again"
    ailing = [host for host in everyone if not host.is_healthy]
    if todo and (len(ailing) > 1 or any(host.name not in {each.name for each in todo} for host in ailing)):
        for host in ailing:
            ailments = "; ".join(f"{state.name}: {state.problem}" for state in host.members if state.problem)
            yield f"not all members are healthy ({ailments}); see ./menagerie status {views[0].etcd.cluster.name} etcd"


def _versions(views: Sequence[EtcdView], todo: Sequence[EtcdHost]) -> list[str]:
    """Return violations of etcd's version rules. The version of an etcd is that of its oldest member.

    Source: etcd.io, "Upgrading etcd clusters" and "Downgrading etcd clusters".
    """
    problems = []
    for view in views:
        versions = {etcd_version(as_config(host.text)) for host in todo if _on(view, [host])} - {""}
        allowed = {status.downgrade for _, status in view.answering}
        running = [status.version for _, status in view.answering if status.version]
        problems += [
            f"etcd {view.etcd.role}: {why}"
            for version in sorted(versions)
            if (why := version_rule(running, version, allowed))
        ]
    return problems


def version_rule(running: Sequence[str], version: str, allowed: set[str]) -> str:
    """Return why members can't move to a version, "" if they can. allowed: minor releases for which a downgrade is enabled."""
    if not running:
        return ""
    oldest, target = min(map(_minor, running)), _minor(version)
    if target in (oldest, (oldest[0], oldest[1] + 1)):
        return ""
    from_to = f"from {'.'.join(map(str, oldest))} to {version}"
    if target > oldest:
        return f"{_RULE}; this would be {from_to}"
    if target == (oldest[0], oldest[1] - 1) and any(_minor(release) == target for release in allowed if release):
        return ""
    return f"{_BACK}; this would be {from_to}"


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def _payload(host: EtcdHost) -> dict[str, Any]:
    return host.agents[0].payload()


def roll(plan_: RollPlan, operation: Journal, step: Step, report: Report) -> tuple[EtcdView, ...]:
    """Roll the hosts. Return the resulting views of all etcds. Raises FailedError if a host can't apply its payload."""
    for change in plan_.changes:
        with step(change.host.name):
            try:
                _roll_host(plan_, change.host, report)
            except (AgentError, EtcdError, TimedOutError, EtcdRefusedError) as error:
                raise FailedError(_way_on(plan_, change.host, error), code="roll-stopped") from None
            operation.done(f"host {change.host.name}", payload=change.host.desired_sha256[:16])
    return tuple(read_members(view.etcd) for view in plan_.views)


def _roll_host(plan_: RollPlan, host: EtcdHost, report: Report) -> None:
    etcds = [view.etcd for view in plan_.views if _on(view, [host])]
    for etcd in etcds:
        _hand_over(etcd, host, plan_, report)
    report(f"{host.name}: applying payload {host.desired_sha256[:16]}")
    host.agents[0].apply(host.desired_sha256, host.packed, report)
    for etcd in etcds:
        wait_until(_lagging(etcd), BACK_S, report)


def _hand_over(etcd: EtcdAccess, host: EtcdHost, plan_: RollPlan, report: Report) -> None:
    """Check that all other members are healthy, and move leadership to one of them, preferably on a host that is done."""
    view = read_members(etcd)
    others = [state for state in view.members if state.member.host != host.name]
    if ailing := [state for state in others if state.problem and "alarm" not in state.problem.lower()]:
        ailments = "; ".join(f"{state.name}: {state.problem}" for state in ailing)
        raise EtcdRefusedError(f"etcd {etcd.role}: another member is unhealthy ({ailments})")
    if view.leader is None or view.leader.member.host != host.name or not others:
        return
    names = [change.host.name for change in plan_.changes]
    waiting = names[names.index(host.name) :]
    chosen = min(others, key=lambda state: (state.member.host in waiting, not state.healthy, state.name))
    if chosen.healthy:  # with an alarm, no member is healthy, and writes fail anyway
        report(leader.move(view, chosen.name))


def _lagging(etcd: EtcdAccess) -> Callable[[], str]:
    """Return a check for `wait_until`: every member is healthy and has applied the highest index at that moment."""
    reached: list[int] = []

    def missing() -> str:
        view = read_members(etcd)
        ailing = [state for state in view.members if state.problem and "alarm" not in state.problem.lower()]
        if ailing or len(view.answering) < len(view.members):
            return "; ".join(f"{state.name}: {state.problem}" for state in ailing) or "not every member responds"
        if not reached:
            reached.append(max(status.index for _, status in view.answering))
        behind = [state.name for state, status in view.answering if status.applied < reached[0]]
        return f"{', '.join(behind)} has not caught up to index {reached[0]}" if behind else ""

    return missing


def _way_on(plan_: RollPlan, host: EtcdHost, error: Exception) -> str:
    names = [change.host.name for change in plan_.changes]
    left = names[names.index(host.name) + 1 :]
    lines = [f"{host.name}: {error}", f"not started: {', '.join(left)}" if left else "no other host is left"]
    return "\n  ".join(lines) + (
        f"\nTo continue, fix this and run: {plan_.command}"
        f"\nTo roll back, restore the former spec (or release of Menagerie) and run: ./menagerie up {plan_.cluster}, then "
        f"{plan_.command}"
    )


def listed(changes: Sequence[PayloadChange]) -> Iterator[str]:
    """Yield the differences of each host for people. Hosts with equal differences are grouped."""
    alike: dict[tuple[str, ...], list[PayloadChange]] = {}
    for change in changes:
        alike.setdefault(
            tuple(difference.replace(change.host.name, "*") for difference in change.differences), []
        ).append(change)
    for phrases, group in alike.items():
        yield ", ".join(change.host.name for change in group)
        yield from (f"  {line}" for line in phrases or ("finishes the payload that was half applied",))
