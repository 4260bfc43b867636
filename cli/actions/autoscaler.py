"""`autoscaler run` and `plan`: their passes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import typer

from cli import exits
from cli.actions.rounds import without_end
from cli.asking import confirm
from cli.views import autoscaler as view
from clients import logs
from clients.lease import Lease, this_process
from clients.telemetry import serving
from cluster.autoscaler import LEASE
from cluster.spec import Cluster
from controllers.autoscaler import choose
from controllers.autoscaler.actuator import Actuator
from controllers.autoscaler.look import read_world
from controllers.autoscaler.metrics import Metrics, pages
from controllers.autoscaler.pod_events import EventWriter
from controllers.autoscaler.run import Loop
from controllers.autoscaler.settings import settings_of
from operations import stack
from operations.repair import means
from operations.repair.look import CheckInputs, limits_of

log = logging.getLogger(__name__)


def run(
    cluster: Cluster, *, once: bool, metrics: tuple[str, int] | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Run one pass and exit with its code, or run passes without end. metrics: address and port to serve them at."""
    work = _Work(cluster, as_json=as_json)
    if not (yes or as_json or dry_run):
        work.confirm()
    logs.set_up()
    with ExitStack() as resources:
        if not dry_run:
            resources.enter_context(work.locked())
        if metrics:
            resources.enter_context(work.metered(*metrics))
        if once:
            raise typer.Exit(work.round(dry_run=dry_run))
        work.watch(dry_run=dry_run)


def plan(cluster: Cluster, what: str | None, *, as_json: bool) -> None:
    """Print what the next pass would decide, and exit. what: a pod or a node; None for everything."""
    result = _Work(cluster, as_json=as_json).loop().once(dry_run=True)
    if what is None:
        raise typer.Exit(view.planned(cluster, result, as_json=as_json))
    raise typer.Exit(view.explained(cluster, result, what, as_json=as_json))


class _Work:
    """One cluster's autoscaler."""

    def __init__(self, cluster: Cluster, *, as_json: bool) -> None:
        self.cluster = cluster
        self._settings = settings_of(cluster)
        self._access = stack.access_to(cluster)
        self._groups = choose.groups_of(cluster, self._access.api)
        self._metrics: Metrics | None = None
        self._lease: Lease | None = None
        self._view = view.View(cluster, as_json=as_json)
        self._teller = EventWriter(self._access.api)

    def confirm(self) -> None:
        pools = ", ".join(self._settings.grown(self.cluster.spec.pools))
        again = f"autoscaler run {self.cluster.name}"
        confirm(
            f"Grow and shrink pools {pools} of {self.cluster.name} automatically?",
            again,
            see=("what it would do", f"autoscaler plan {self.cluster.name}"),
        )

    def _around(self) -> CheckInputs:
        access = self._access
        return CheckInputs(
            self.cluster, access.api, lambda: means.control_plane(self.cluster, access), limits_of(self.cluster)
        )

    def loop(self) -> Loop:
        here = self._around()
        return Loop(
            lambda memory: read_world(here, self._groups, self._settings, memory),
            Actuator(self._access.api, self._groups, here.limits),
            self._settings,
            here.limits,
            check=self._lease.check if self._lease else lambda: None,
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        lease = Lease(self._access.api(), LEASE, this_process())
        with lease.holding(report=log.info):
            self._lease = lease
            yield

    @contextmanager
    def metered(self, address: str, port: int) -> Iterator[None]:
        self._metrics = Metrics(time.time)
        stale_s = max(10 * self._settings.interval / 1000, 300.0)
        with serving(pages(self._metrics, stale_s), address, port) as port_:
            log.info("metrics at http://%s:%d/metrics", address, port_)
            yield

    def round(self, *, dry_run: bool) -> int:
        """Run one pass and return an exit code."""
        result = self.loop().once(dry_run=dry_run)
        if self._metrics:
            self._metrics.count(result)
        events = (0, 0) if dry_run else self._teller.tell(result)
        self._view.show(result, events)
        failed = bool(result.decided.refused) or any(action.failed for action in result.done)
        return exits.FAILED if failed else exits.DONE

    def watch(self, *, dry_run: bool) -> None:
        """Run passes without end. Failures of an API or a cloud are reported and retried."""
        failed = self._metrics.failed if self._metrics else lambda: None
        without_end(lambda: self.round(dry_run=dry_run), self._settings.interval / 1000, failed=failed)
