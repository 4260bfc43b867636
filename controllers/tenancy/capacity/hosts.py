"""A cluster's hosts as allocations see them: whose they are, and what runs on them. No I/O.

The taint says whose pods may be placed on a host; the label says whose host it is. They differ while a host moves from one team
to another and pods of the former team still run there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.allocations import BORROWED, MEMBER_LABEL, SYSTEM_LABEL, SYSTEM_NAMESPACES, TEAM_KEY
from cluster.pools import POOL_LABEL, TaintEffect
from cluster.spec import Cluster
from cluster.tenancy import TEAM_LABEL
from controllers.tenancy.sync.objects import Object

_MIRROR = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Pod:
    """A pod on a host that could not run on every host. name: namespace/name.

    teams: those whose hosts it tolerates, or would tolerate if it were created now. anywhere: it tolerates any team's hosts.
    borrowed: it gives way to pods of the host's team.
    """

    name: str
    teams: frozenset[str] = frozenset()
    anywhere: bool = False
    borrowed: bool = False

    def may_be_at(self, team: str) -> bool:
        """Whether the pod could be placed on a host of this team; "" means a host of no team."""
        return not team or self.anywhere or team in self.teams


@dataclass(frozen=True)
class TeamHost:
    """A host. label, taint: the teams that they name, "" if there is none."""

    name: str
    pool: str
    label: str = ""
    taint: str = ""
    ready: bool = True
    pods: tuple[Pod, ...] = ()

    @property
    def holder(self) -> str:
        """Return the team that has the host, or gets it when the last pod of others has ended."""
        return self.taint or self.label

    def in_the_way(self, team: str) -> tuple[str, ...]:
        """Return the names of the pods that could not run here if the host already belonged to the team."""
        return tuple(pod.name for pod in self.pods if not pod.may_be_at(team))

    @property
    def tied(self) -> int:
        """Return the number of pods that could not run on just any team's host."""
        return sum(not pod.anywhere for pod in self.pods)


def hosts_of(
    cluster: Cluster, nodes: Iterable[Object], pods: Iterable[Object], namespaces: Iterable[Object]
) -> tuple[tuple[TeamHost, ...], tuple[str, ...]]:
    """Return (hosts of the cluster's pools, by name; names of Nodes outside all pools that have a team's label or taint)."""
    spaces = {each["metadata"]["name"]: each for each in namespaces}
    system = frozenset(name for name, each in spaces.items() if is_system(each))
    teams = {name: teams_of(each) for name, each in spaces.items()}
    on: dict[str, list[Pod]] = {}
    for raw in pods:
        node = (raw.get("spec") or {}).get("nodeName")
        if node and _counts(raw, system):
            on.setdefault(node, []).append(_pod(raw, teams.get(raw["metadata"]["namespace"], frozenset())))
    at_sites = {host.name: pool for pool, host in cluster.host_list()}
    hosts, strays = [], []
    for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        pool = at_sites.get(name) or labels.get(POOL_LABEL, "")
        host = TeamHost(name, pool, labels.get(TEAM_KEY, ""), taint_of(node), _ready(node), tuple(on.get(name, ())))
        if pool in cluster.spec.pools:
            hosts.append(host)
        elif host.holder:
            strays.append(name)
    return tuple(hosts), tuple(strays)


def taint_of(node: Object) -> str:
    """Return the team that a Node's taint names, "" if it has none."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return next((str(each.get("value", "")) for each in taints if is_team_taint(each)), "")


def is_team_taint(taint: Mapping[str, Any]) -> bool:
    """Whether a taint is that of allocations. Taints with other effects are not ours."""
    return bool(taint["key"] == TEAM_KEY and taint["effect"] == TaintEffect.NO_SCHEDULE)


def is_system(namespace: Object) -> bool:
    """Whether the namespace's pods may run on any team's hosts."""
    metadata = namespace["metadata"]
    return metadata["name"] in SYSTEM_NAMESPACES or (metadata.get("labels") or {}).get(SYSTEM_LABEL) == "true"


def teams_of(namespace: Object) -> frozenset[str]:
    """Return the teams whose hosts a namespace's pods may use, read from its labels as the admission policies do."""
    labels = namespace["metadata"].get("labels") or {}
    teams = {key.removeprefix(MEMBER_LABEL) for key in labels if key.startswith(MEMBER_LABEL)}
    return frozenset(teams | ({labels[TEAM_LABEL]} if labels.get(TEAM_LABEL) else set()))


def _counts(raw: Object, system: frozenset[str]) -> bool:
    """Whether a pod matters for moves: not if it has ended, runs on every host, or may run anywhere once it is created again."""
    metadata = raw["metadata"]
    owner = next((each["kind"] for each in metadata.get("ownerReferences") or () if each.get("controller")), "")
    return not (
        metadata["namespace"] in system
        or owner == "DaemonSet"
        or _MIRROR in (metadata.get("annotations") or {})
        or (raw.get("status") or {}).get("phase") in _ENDED
    )


def _pod(raw: Object, own: frozenset[str]) -> Pod:
    name = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
    tolerations = [each for each in raw["spec"].get("tolerations") or () if _is_about_teams(each)]
    anywhere = any(each.get("operator") == "Exists" for each in tolerations)
    teams = frozenset(str(each.get("value", "")) for each in tolerations if each.get("operator") != "Exists")
    return Pod(name, teams | own, anywhere, raw["spec"].get("priorityClassName") == BORROWED)


def _is_about_teams(toleration: Mapping[str, Any]) -> bool:
    """Whether a toleration covers teams' taints. Without a key it covers every taint, without an effect every effect."""
    effect = toleration.get("effect") or TaintEffect.NO_SCHEDULE
    return (toleration.get("key") or TEAM_KEY) == TEAM_KEY and effect == TaintEffect.NO_SCHEDULE


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
