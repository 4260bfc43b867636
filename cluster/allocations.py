"""Which team has how many hosts of a pool, and who may use what is idle of them. Settings of a spec, and the names in the API."""

from __future__ import annotations

from pydantic import Field

from cluster.model import Model
from cluster.quantities import DurationMs, Name
from cluster.words import Title

TEAM_KEY = "openai.com/team"
"""Label of a Node, and key of its taint with the effect NoSchedule: the team whose host it is."""
MEMBER_LABEL = "teams.menagerie.dev/"
"""On a person's namespace, before a team's name: the person is in the team."""
SYSTEM_LABEL = "menagerie.dev/system"
"""On a namespace, "true": its pods may go to any team's hosts."""
CONTROLLERS_NAMESPACE = "menagerie-system"
"""Of Menagerie's own controllers, which are of the system: who hands hosts to teams must not be without one."""
SYSTEM_NAMESPACES = ("csi", "kube-node-lease", "kube-public", "kube-system", CONTROLLERS_NAMESPACE, "rook-ceph")
"""Whose pods may go to any host and before all others, whatever the namespaces' labels say."""
BORROWED = "menagerie-borrowed"
"""The PriorityClass of what runs on hosts of others while they are idle."""
BORROWED_PRIORITY = -1_000_000
"""Below every class that people make, and below -10, from where cluster-autoscaler adds no host for a pod."""

_SECOND = 1000
_MINUTE = 60 * _SECOND


class Allocation(Model):
    """Hosts of a pool that are one team's."""

    pool: Name
    """One of pools."""
    team: Title
    """As the directory calls it."""
    hosts: int = Field(ge=0)
    """How many; which they are is chosen, idle ones first."""


class Borrowing(Model):
    """Work on hosts of others while they are idle: how long it has to end when their team wants them back."""

    checkpoint: DurationMs = 2 * _MINUTE
    """It has so long at least, whatever its pods say: to write a checkpoint. Whole seconds."""
    most: DurationMs = 10 * _MINUTE
    """Its pods may ask for no more: so long the owner waits at worst. Whole seconds."""

    @property
    def checkpoint_s(self) -> int:
        return self.checkpoint // _SECOND

    @property
    def most_s(self) -> int:
        return self.most // _SECOND
