"""The stack of one cluster in its own account: a simulated cloud with nothing else in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.spec import Cluster
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import SECURITY_GROUP_RULES, Record, World, normal
from stacks import grants
from stacks.automation import ClusterStack
from stacks.errors import StackError
from stacks.events import describe
from stacks.policies.model import Resource
from stacks.policies.values import shown
from stacks.steps import Complaint, Recording, name_of
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import environment, saving

Program = Callable[[Cluster], None]
"""Declares the resources of a cluster."""

Report = Callable[[str], None]

_PROVIDERS = "PULUMI_DEBUG_PROVIDERS"


class Account:
    """cluster: what the program declares; offers: what the cloud offers; replace either between runs. resources: of the
    stack after the last `up`."""

    def __init__(self, cluster: Cluster, world: World, offers: Offers) -> None:
        self.cluster = cluster
        self.world = world
        self.offers = offers
        self.resources: tuple[Resource, ...] = ()
        self.report: Report = lambda _: None
        self.stack: ClusterStack

    def preview(self, *, refresh: bool = True) -> Recording:
        """Return what the engine would do, up to its first failure."""
        return self._recorded(lambda on_event: self.stack.preview(on_event, refresh=refresh))

    def up(self) -> Recording:
        """Return what the engine did, up to its first failure."""
        recording = self._recorded(self.stack.up)
        self._deployment = self.stack.deployment()
        self.resources = tuple(_resources(self._deployment))
        return recording

    def remove_protection(self) -> Recording:
        """Remove the protection; return what the engine did."""
        return self._recorded(self.stack.remove_protection)

    def destroy(self) -> Recording:
        """Return what the engine deleted, up to its first failure."""
        return self._recorded(self.stack.destroy)

    def orphans(self) -> list[Record]:
        """Return what exists in the cloud but was not in the state after the last `up`."""
        return self.world.orphans(self._deployment)

    def owned(self) -> list[Record]:
        """Return what exists in the cloud and was in the state after the last `up`."""
        orphan_keys = {record.key for record in self.orphans()}
        return [record for record in self.world if record.key not in orphan_keys]

    def _recorded(self, run: Callable[[Any], object]) -> Recording:
        recording, progress = Recording(), describe(lambda text: self.report(text))

        def on_event(event: Any) -> None:
            recording(event)
            progress(event)

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
    """Open the cluster's account for a block. folder: holds all state; the caller removes it.

    pulumi: path of the CLI. faults: injected into calls to the cloud; with them, the engine saves the state after each step.
    """
    account = Account(cluster, World(), offers)
    account.world.quotas[SECURITY_GROUP_RULES] = cluster.spec.control_plane.security_group_rules
    # Only the cluster's own cloud: the engine finds no provider for any other.
    with (
        simulated_clouds(
            account.world, faults, lambda: account.offers, [cluster.spec.control_plane.cloud.value]
        ) as served,
        dynamic_resources() as plugin,
        grants.simulated_time(),
        environment({_PROVIDERS: f"{served[_PROVIDERS]},{plugin}", **saving(faults)}),
    ):
        account.stack = ClusterStack(cluster, lambda: program(account.cluster), pulumi, folder)
        yield account


def _resources(deployment: Mapping[str, Any]) -> Iterator[Resource]:
    for state in deployment.get("resources", ()):
        if not state.get("delete"):
            yield Resource(
                normal(state["type"]),
                name_of(state["urn"]),
                state["urn"],
                state.get("parent", ""),
                shown(state.get("inputs") or {}),
                shown(state.get("outputs") or {}),
                bool(state.get("protect")),
            )
