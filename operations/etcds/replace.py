"""Replace a member that lost its disk or its sense: removed first, then a learner, then one with a vote."""

from __future__ import annotations

import secrets

from clients.etcd_client import EtcdError, Listed
from clients.waiting import wait_until
from operations.etcds.look import Etcd, View, look, lost_quorum
from operations.etcds.settling import once_settled
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

STEPS = ("remove", "add", "join", "promote", "healthy")
SYNC_S = 1800
HEALTHY_S = 120


def refuse(view: View, name: str, *, although_healthy: bool) -> None:
    """EtcdRefusedError where replacing the member would make things worse, or needs nobody. Touches nothing."""
    etcd = view.etcd
    if not view.has_quorum:
        raise EtcdRefusedError(lost_quorum(view))
    others = [each for each in view.seen if each.name != name and not each.healthy and not _only_alarms(each.ailment)]
    if others:
        ailing = "; ".join(f"{each.name}: {each.ailment}" for each in others)
        raise EtcdRefusedError(
            f"etcd {etcd.role}: another member is not healthy ({ailing}). Nothing was changed. Mend that one first: "
            f"{etcd.command('state')}"
        )
    chosen = next(each for each in view.seen if each.name == name)
    if chosen.agent_error:
        raise EtcdRefusedError(
            f"{chosen.agent_error}. Nothing was changed. A new host for the member comes first: "
            f"./menagerie up {etcd.cluster.name}"
        )
    voting = bool(chosen.status and not chosen.status.learner)
    if chosen.healthy and voting and not although_healthy:
        raise EtcdRefusedError(
            f"{name} is healthy; replacing it would throw its data away and take a vote away meanwhile. Nothing was "
            f"changed. To do it all the same: {etcd.command('replace')} {name} --although-healthy"
        )


def replace(view: View, name: str, operation: Journal, step: Step, report: Report) -> View:
    """Do it; the members as they are then. A run that was cut short goes on from what the etcd says of itself."""
    etcd = view.etcd
    if not operation.has("begun"):
        operation.done("begun", token=f"replace-{secrets.token_hex(4)}", member=name)
    token = operation.facts["token"]
    with step("remove"):
        if not operation.has("remove"):
            once_settled(lambda: _remove(etcd, name), report)
            operation.done("remove")
    with step("add"):
        once_settled(lambda: _add(etcd, name), report)
    with step("join"):
        if not operation.has("join"):
            initial_cluster = once_settled(lambda: _initial_cluster(etcd), report)
            etcd.agents[name].act("join", report, token=token, initial_cluster=initial_cluster)
            operation.done("join")
    with step("promote"):
        wait_until(lambda: _promoted(etcd, name), SYNC_S, report)
    with step("healthy"):
        once_settled(lambda: take_back_corrupt(etcd), report)
        return _wait_until_healthy(etcd, report)


def take_back_corrupt(etcd: Etcd) -> None:
    """The alarm names a member that is no more; members that still differ raise it again after the next compaction."""
    if "CORRUPT" in etcd.client.alarms():
        etcd.client.disarm()


def _remove(etcd: Etcd, name: str) -> None:
    """The member that this host had; not a learner that another run of this verb has added, and which has not started."""
    old = _of(etcd, name)
    if old and not (old.learner and not old.name):
        etcd.client.remove(old)


def _add(etcd: Etcd, name: str) -> None:
    if _of(etcd, name) is None:
        etcd.client.add_learner(name, etcd.member(name).peer_url)


def _of(etcd: Etcd, name: str) -> Listed | None:
    """As the etcd lists it, by where its peers find it: one that has not started yet has no name."""
    url = etcd.member(name).peer_url
    return next((each for each in etcd.client.listed() if each.name == name or url in each.peer_urls), None)


def _initial_cluster(etcd: Etcd) -> str:
    """What a joining member must be told: exactly the members that the etcd has, or it refuses to start."""
    names = {each.peer_url: each.name for each in etcd.members}
    return ",".join(f"{each.name or names[url]}={url}" for each in etcd.client.listed() for url in each.peer_urls)


def _promoted(etcd: Etcd, name: str) -> str:
    try:
        found = _of(etcd, name)
        if found is None:
            return f"{name} is not listed yet"
        return etcd.client.promote(found.id) if found.learner else ""
    except EtcdError as error:
        return str(error)


def _wait_until_healthy(etcd: Etcd, report: Report) -> View:
    views: list[View] = []

    def missing() -> str:
        views.append(look(etcd))
        ailing = [each for each in views[-1].seen if not each.healthy and not _only_alarms(each.ailment)]
        return "; ".join(f"{each.name}: {each.ailment}" for each in ailing)

    wait_until(missing, HEALTHY_S, report)
    return views[-1]


def _only_alarms(ailment: str) -> bool:
    # Words of etcdctl endpoint health, which has others for a member that was too slow to say its alarms.
    return ailment.startswith("Active Alarm(s): ")
