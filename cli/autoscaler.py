"""`autoscaler run`, `plan` and `simulate`: their arguments and passes. `cli.autoscaler_view` prints."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import exits
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.rounds import without_end
from cli.specs import checked

if TYPE_CHECKING:
    from cli.autoscaler_view import View
    from clients.access import Access
    from cluster.autoscaler import Autoscaler
    from cluster.spec import Cluster
    from controllers.autoscaler.actuator import Actuator
    from controllers.autoscaler.groups import Groups
    from controllers.autoscaler.run import Loop
    from operations.repair.look import CheckInputs

log = logging.getLogger(__name__)


@examples(
    ("autoscaler run lab --once --dry-run", "show what one pass would do"),
    ("autoscaler run jaguar --once", "one pass; asks"),
    ("autoscaler run jaguar --yes", "as a service"),
    ("autoscaler run jaguar --yes --metrics 127.0.0.1:9810", "with metrics"),
)
def run(
    cluster: ClusterArg,
    once: Annotated[bool, typer.Option("--once", help="Run one pass, then exit.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="ADDRESS:PORT", help="Serve /metrics and /healthz at this address."),
    ] = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Add hosts for pending pods; drain and return idle hosts.

    A pass runs every autoscaler.interval. It observes, decides, and acts within
    the limits of the spec. It never removes more than a share of the cluster, and
    nothing while the API, the clouds or the nodes are unhealthy. Only one
    instance acts on a cluster at a time.

    Idempotent: the next run continues. --json prints a document per pass, one per
    line. With --once: exit code 1 if nothing could be decided, or an action
    failed. Exit code 3 if another instance acts on the cluster.
    """
    place = _address(metrics)
    loaded = checked(cluster)
    from clients import logs

    work = _Work(loaded, as_json=as_json)
    if not (yes or as_json or dry_run):
        work.confirm()
    logs.set_up()
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(work.locked())
        if place:
            stack.enter_context(work.metered(*place))
        if once:
            raise typer.Exit(work.round(dry_run=dry_run))
        work.watch(dry_run=dry_run)


@examples(
    ("autoscaler plan jaguar", "placement of each pod, and cost"),
    ("autoscaler plan jaguar vision/train-0", "why a pod is pending"),
    ("autoscaler plan jaguar gpu-17", "why a host stays or is removed"),
    ("autoscaler plan jaguar --json", "for a program"),
)
def plan(
    cluster: ClusterArg,
    what: Annotated[
        str | None,
        typer.Argument(metavar="POD", help="NAMESPACE/NAME of a pod, or the name of a node. Default: all."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Show what the next pass would decide, for all pods, pools and hosts, or for one. Changes nothing.

    For a pod: why it is pending, and what it needs. For a node: why it stays.
    Exit code 1 if nothing could be decided, 2 if there is no such pod or node.
    """
    loaded = checked(cluster)
    from cli import autoscaler_view

    work = _Work(loaded, as_json=as_json)
    result = work.loop().once(dry_run=True)
    if what is None:
        raise typer.Exit(autoscaler_view.planned(loaded, result, as_json=as_json))
    raise typer.Exit(autoscaler_view.explained(loaded, result, what, as_json=as_json))


@examples(
    ("autoscaler simulate jaguar monday.jsonl", "cost and waiting times"),
    ("autoscaler simulate jaguar monday.jsonl --seed 2", "another run"),
    more='\n\nA line of a trace: {"at": "10m", "name": "train", "count": 4, "gang": true,\n"runs": "3h", "requests": '
    '{"cpu": "80", "nvidia.com/gpu": 8}}',
)
def simulate(
    cluster: ClusterArg,
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A file of JSON lines; docs/how-to/simulate.md has the keys.")
    ],
    seed: Annotated[int, typer.Option("--seed", help="Random seed for when spot machines are reclaimed.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", help="Stop after this many hours. Default: when all pods have ended.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a trace of pods through the autoscaler in simulated time. Reads the spec and the trace only.

    Machines boot after their documented times. Spot machines are reclaimed as
    often as autoscaler.interruptions says. Prints the cost, how long pods wait,
    which never start and why, and the cost without scale-in. Stops when nothing
    runs and no pending pod could ever start.

    Exit code 2 if the trace is invalid; all its errors are listed.
    """
    loaded = checked(cluster)
    from cli import autoscaler_view
    from controllers.autoscaler.choose import settings_of
    from controllers.autoscaler.simulate import run as simulation
    from controllers.autoscaler.simulate.trace import lines, read
    from operations.repair.look import limits_of

    if hours is not None and not 0 < hours <= _MOST_HOURS:
        raise typer.BadParameter(
            f"--hours: {hours} is out of range; write a number above 0 and at most {_MOST_HOURS:,}"
        )
    arrivals = read(lines(trace), trace.name)
    setting = simulation.setting_of(loaded, settings_of(loaded), limits_of(loaded))
    with autoscaler_view.progress(len(arrivals), quiet=as_json) as watch:
        outcome = simulation.simulate(setting, arrivals, seed, watch("with scale-in"), most_hours=hours)
        without = simulation.without_scale_in(setting)
        unscaled = simulation.simulate(without, arrivals, seed, watch("without scale-in"), hours=outcome.hours)
    autoscaler_view.simulated(loaded, outcome, unscaled, as_json=as_json)


_MOST_HOURS = 87_600
"""Ten years."""


class _Work:
    """One cluster's autoscaler."""

    def __init__(self, cluster: Cluster, *, as_json: bool) -> None:
        from controllers.autoscaler.choose import groups_of, settings_of
        from operations import stack

        self.cluster = cluster
        self._as_json = as_json
        self._settings: Autoscaler = settings_of(cluster)
        self._access: Access = stack.access_to(cluster)
        self._groups: Groups = groups_of(cluster, self._access.api)
        self._metrics: object | None = None
        self._lease: object | None = None
        self._view: View | None = None

    def confirm(self) -> None:
        from cli.asking import confirm

        pools = ", ".join(self._settings.grown(self.cluster.spec.pools))
        again = f"autoscaler run {self.cluster.name}"
        confirm(
            f"Grow and shrink pools {pools} of {self.cluster.name} automatically?",
            again,
            see=("what it would do", f"autoscaler plan {self.cluster.name}"),
        )

    def _around(self) -> CheckInputs:
        from operations.repair.look import CheckInputs, limits_of
        from operations.repair.means import control_plane

        access = self._access
        return CheckInputs(
            self.cluster, access.api, lambda: control_plane(self.cluster, access), limits_of(self.cluster)
        )

    def loop(self) -> Loop:
        from clients.lease import Lease
        from controllers.autoscaler.actuator import Actuator
        from controllers.autoscaler.look import read_world
        from controllers.autoscaler.run import Loop

        here = self._around()
        hands: Actuator = Actuator(self._access.api, self._groups, here.limits)
        lease = self._lease
        check = lease.check if isinstance(lease, Lease) else lambda: None
        return Loop(
            lambda memory: read_world(here, self._groups, self._settings, memory),
            hands,
            self._settings,
            here.limits,
            check=check,
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        from clients.lease import Lease, this_process
        from cluster.autoscaler import LEASE

        lease = Lease(self._access.api(), LEASE, this_process())
        with lease.holding(report=log.info):
            self._lease = lease
            yield

    @contextmanager
    def metered(self, address: str, port: int) -> Iterator[None]:
        from clients.telemetry import serving
        from controllers.autoscaler.metrics import Metrics, pages

        self._metrics = metrics = Metrics(time.time)
        stale_s = max(10 * self._settings.interval / 1000, 300.0)
        with serving(pages(metrics, stale_s), address, port) as port_:
            log.info("metrics at http://%s:%d/metrics", address, port_)
            yield

    def round(self, *, dry_run: bool) -> int:
        """Run one pass and return an exit code."""
        from cli import autoscaler_view
        from controllers.autoscaler.metrics import Metrics
        from controllers.autoscaler.pod_events import EventWriter

        if self._view is None:
            self._view = autoscaler_view.View(self.cluster, as_json=self._as_json)
            self._teller = EventWriter(self._access.api)
        result = self.loop().once(dry_run=dry_run)
        if isinstance(self._metrics, Metrics):
            self._metrics.count(result)
        events = (0, 0) if dry_run else self._teller.tell(result)
        self._view.show(result, events)
        failed = bool(result.decided.refused) or any(action.failed for action in result.done)
        return exits.FAILED if failed else exits.DONE

    def watch(self, *, dry_run: bool) -> None:
        """Run passes without end. Failures of an API or a cloud are reported and retried."""
        from controllers.autoscaler.metrics import Metrics

        failed = self._metrics.failed if isinstance(self._metrics, Metrics) else lambda: None
        without_end(lambda: self.round(dry_run=dry_run), self._settings.interval / 1000, failed=failed)


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"--metrics: {text!r} is not an address and a port; write 127.0.0.1:9810")
    return host.strip("[]"), int(port)
