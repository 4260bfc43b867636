"""Allocations of a pool's hosts to teams, and borrowing of idle ones: settings of a spec, and names in the API."""

from __future__ import annotations

from pydantic import Field

from cluster.model import Model
from cluster.quantities import DurationMs, Name
from cluster.words import Title

TEAM_KEY = "openai.com/team"
"""Label of a Node, and key of its NoSchedule taint: the team that the host is allocated to."""
MEMBER_LABEL = "teams.menagerie.dev/"
"""Prefix of a label on a person's namespace, followed by a team's name: the person is in that team."""
SYSTEM_LABEL = "menagerie.dev/system"
"""Label of a namespace: with "true", its pods may run on any team's hosts."""
CONTROLLERS_NAMESPACE = "menagerie-system"
"""Namespace of Menagerie's controllers. A system namespace: the controller that allocates hosts needs one itself."""
SYSTEM_NAMESPACES = ("csi", "kube-node-lease", "kube-public", "kube-system", CONTROLLERS_NAMESPACE, "rook-ceph")
"""Namespaces whose pods may run on any host and before all others, regardless of the namespace's labels."""
BORROWED = "menagerie-borrowed"
"""The PriorityClass of pods that borrow idle hosts."""
BORROWED_PRIORITY = -1_000_000
"""Below every class that people create, and below -10, where cluster-autoscaler stops adding hosts for pods."""

_SECOND = 1000
_MINUTE = 60 * _SECOND


class Allocation(Model):
    """Hosts of a pool that belong to one team."""

    pool: Name
    """The name of a pool."""
    team: Title
    """The team's name in the directory."""
    hosts: int = Field(ge=0)
    """Number of hosts. Menagerie chooses which, idle ones first."""


class Borrowing(Model):
    """Work on idle hosts of another team: how long it has to terminate when that team needs its hosts."""

    checkpoint: DurationMs = 2 * _MINUTE
    """The least time that every pod gets, for example to write a checkpoint. In whole seconds."""
    most: DurationMs = 10 * _MINUTE
    """The most time that a pod may ask for, and so the longest that the owner waits. In whole seconds."""

    @property
    def checkpoint_s(self) -> int:
        return self.checkpoint // _SECOND

    @property
    def most_s(self) -> int:
        return self.most // _SECOND
