"""The stack of one cluster in an account of its own: a simulated cloud in which there is nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.spec import Cluster
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import Record, World, normal
from stacks.automation import ClusterStack
from stacks.errors import StackError
from stacks.events import describe
from stacks.policies.model import Resource
from stacks.policies.values import shown
from stacks.steps import Complaint, Recording, name_of
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import environment

Program = Callable[[Cluster], None]
"""Declares the resources of a cluster."""

Report = Callable[[str], None]

_PROVIDERS = "PULUMI_DEBUG_PROVIDERS"


class Account:
    """cluster: what the program is to declare; exchange it between runs. resources: what the last `up` made."""

    def __init__(self, cluster: Cluster, world: World) -> None:
        self.cluster = cluster
        self.world = world
        self.resources: tuple[Resource, ...] = ()
        self.report: Report = lambda _: None
        self.stack: ClusterStack

    def preview(self, *, refresh: bool = True) -> Recording:
        """What the engine would do, as far as it came."""
        return self._recorded(lambda on_event: self.stack.preview(on_event, refresh=refresh))

    def up(self) -> Recording:
        """What the engine did, as far as it came."""
        recording = self._recorded(self.stack.up)
        self._deployment = self.stack.deployment()
        self.resources = tuple(_resources(self._deployment))
        return recording

    def let_go(self) -> Recording:
        """What the engine did to take protection off."""
        return self._recorded(self.stack.let_go)

    def destroy(self) -> Recording:
        """What the engine deleted, as far as it came."""
        return self._recorded(self.stack.destroy)

    def orphans(self) -> list[Record]:
        """What exists and the state did not know of after the last `up`."""
        return self.world.orphans(self._deployment)

    def owned(self) -> list[Record]:
        """What exists and the state knew of after the last `up`."""
        strange = {record.key for record in self.orphans()}
        return [record for record in self.world if record.key not in strange]

    def _recorded(self, run: Callable[[Any], object]) -> Recording:
        recording, tell = Recording(), describe(lambda text: self.report(text))

        def on_event(event: Any) -> None:
            recording(event)
            tell(event)

        try:
            run(on_event)
        except StackError as error:
            if not recording.complaints:
                recording.complaints.append(Complaint("", str(error)))
        return recording


@contextmanager
def opened(
    cluster: Cluster,
    program: Program,
    pulumi: Path,
    folder: Path,
    offers: Offers,
    faults: Faults | None = None,
) -> Iterator[Account]:
    """The cluster's account for the length of a block. folder: takes all state; the caller removes it.

    pulumi: path of the CLI. faults: that calls to the cloud meet.
    """
    account = Account(cluster, World())
    # Only the cluster's own cloud: the engine finds no provider for another.
    with (
        simulated_clouds(account.world, faults, offers, clouds=[cluster.spec.control_plane.cloud.value]) as served,
        dynamic_resources() as plugin,
        environment({_PROVIDERS: f"{served[_PROVIDERS]},{plugin}"}),
    ):
        account.stack = ClusterStack(cluster, lambda: program(account.cluster), pulumi, folder)
        yield account


def _resources(deployment: Mapping[str, Any]) -> Iterator[Resource]:
    for known in deployment.get("resources", ()):
        if not known.get("delete"):
            yield Resource(
                normal(known["type"]),
                name_of(known["urn"]),
                known["urn"],
                known.get("parent", ""),
                shown(known.get("inputs") or {}),
                shown(known.get("outputs") or {}),
                bool(known.get("protect")),
            )
