"""A cluster's hosts as allocations see them: whose they are, and what runs on them. No I/O.

The taint says whose pods may come, the label whose host it is. They differ while a host goes from one team to another and
pods of the former still run there.
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
    """What runs on a host and would not come to every one. name: namespace/name.

    teams: those whose hosts it tolerates, or would if it were made now. anywhere: it tolerates any team's. borrowed: and gives
    way to the host's own.
    """

    name: str
    teams: frozenset[str] = frozenset()
    anywhere: bool = False
    borrowed: bool = False

    def may_be_at(self, team: str) -> bool:
        """Whether it could come to a host of the team, "" of nobody."""
        return not team or self.anywhere or team in self.teams


@dataclass(frozen=True)
class Host:
    """label, taint: the teams that they name, "" where there is none."""

    name: str
    pool: str
    label: str = ""
    taint: str = ""
    ready: bool = True
    pods: tuple[Pod, ...] = ()

    @property
    def holder(self) -> str:
        """Who has it, or will when the last pod of others has ended."""
        return self.taint or self.label

    def in_the_way(self, team: str) -> tuple[str, ...]:
        """Names of the pods that would not come if it were the team's already."""
        return tuple(pod.name for pod in self.pods if not pod.may_be_at(team))

    @property
    def tied(self) -> int:
        """Pods that are there because of whose host it is."""
        return sum(not pod.anywhere for pod in self.pods)


def hosts_of(
    cluster: Cluster, nodes: Iterable[Object], pods: Iterable[Object], namespaces: Iterable[Object]
) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """(hosts of the cluster's pools by name, names of Nodes of no pool that have a team's label or taint)."""
    spaces = {each["metadata"]["name"]: each for each in namespaces}
    system = frozenset(name for name, each in spaces.items() if is_system(each))
    teams = {name: teams_of(each) for name, each in spaces.items()}
    on: dict[str, list[Pod]] = {}
    for raw in pods:
        node = (raw.get("spec") or {}).get("nodeName")
        if node and _counts(raw, system):
            on.setdefault(node, []).append(_pod(raw, teams.get(raw["metadata"]["namespace"], frozenset())))
    at_sites = {host.name: pool for pool, host in cluster.host_list()}
    found, strays = [], []
    for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        pool = at_sites.get(name) or labels.get(POOL_LABEL, "")
        host = Host(name, pool, labels.get(TEAM_KEY, ""), taint_of(node), _ready(node), tuple(on.get(name, ())))
        if pool in cluster.spec.pools:
            found.append(host)
        elif host.holder:
            strays.append(name)
    return tuple(found), tuple(strays)


def taint_of(node: Object) -> str:
    """The team that a Node's taint names, "" where it has none."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return next((str(each.get("value", "")) for each in taints if is_team_taint(each)), "")


def is_team_taint(taint: Mapping[str, Any]) -> bool:
    """Whether a taint is the one of allocations; those of other effects are somebody else's."""
    return bool(taint["key"] == TEAM_KEY and taint["effect"] == TaintEffect.NO_SCHEDULE)


def is_system(namespace: Object) -> bool:
    """Whether its pods may go to any team's hosts."""
    metadata = namespace["metadata"]
    return metadata["name"] in SYSTEM_NAMESPACES or (metadata.get("labels") or {}).get(SYSTEM_LABEL) == "true"


def teams_of(namespace: Object) -> frozenset[str]:
    """The teams whose hosts a namespace's pods may go to, as the admission policies read them from its labels."""
    labels = namespace["metadata"].get("labels") or {}
    found = {key.removeprefix(MEMBER_LABEL) for key in labels if key.startswith(MEMBER_LABEL)}
    return frozenset(found | ({labels[TEAM_LABEL]} if labels.get(TEAM_LABEL) else set()))


def _counts(raw: Object, system: frozenset[str]) -> bool:
    """Not what has ended, what each host has, and what may be anywhere as soon as it is made anew."""
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
    found = [each for each in raw["spec"].get("tolerations") or () if _is_about_teams(each)]
    anywhere = any(each.get("operator") == "Exists" for each in found)
    teams = frozenset(str(each.get("value", "")) for each in found if each.get("operator") != "Exists")
    return Pod(name, teams | own, anywhere, raw["spec"].get("priorityClassName") == BORROWED)


def _is_about_teams(toleration: Mapping[str, Any]) -> bool:
    """A toleration without a key is of every taint, one without an effect of every effect."""
    effect = toleration.get("effect") or TaintEffect.NO_SCHEDULE
    return (toleration.get("key") or TEAM_KEY) == TEAM_KEY and effect == TaintEffect.NO_SCHEDULE


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
