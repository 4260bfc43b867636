"""`autoscaler run`, `plan`, `explain`, `simulate`: what they take, and their rounds. What they print is in `cli.autoscaler_view`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples
from cli.output import note
from cli.rounds import without_end
from cli.specs import checked

if TYPE_CHECKING:
    from cli.autoscaler_view import View
    from clients.access import Access
    from cluster.autoscaler import Autoscaler
    from cluster.spec import Cluster
    from controllers.autoscaler.groups import Groups
    from controllers.autoscaler.hands import Hands
    from controllers.autoscaler.run import Loop
    from operations.repair.look import Around

app = typer.Typer(
    help="Machines for pods that wait, and none for longer than they are used. docs/how-to/autoscaler.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=examples(
        ("autoscaler run lab --once --dry-run", "what one pass would do"),
        ("autoscaler run jaguar --once", "one pass; asks"),
        ("autoscaler run jaguar --yes", "as a service"),
        ("autoscaler run jaguar --yes --metrics 127.0.0.1:9810", "with /metrics, /healthz"),
    )
)
def run(
    cluster: ClusterArg,
    once: Annotated[bool, typer.Option("--once", help="One pass, then end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look and decide, and change nothing.")] = False,
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="ADDRESS:PORT", help="Serve /metrics and /healthz there.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; for services and scripts. --json does not ask.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document a pass on standard output, one a line.")
    ] = False,
) -> None:
    """Add machines for pods that wait; drain and give back idle ones.

    Looks every autoscaler.interval, decides, and acts within the limits of the
    spec: never more than a share of the cluster goes, and nothing at all while
    the API, the clouds or the nodes do not answer as they should. Only one acts
    on a cluster at a time. Safe to kill at any moment: the next goes on.
    With --once: exit 1 when nothing could be decided, or an act failed.
    Exit 3 when another acts on the cluster.
    """
    place = _address(metrics)
    work = _Work(checked(cluster), as_json=as_json)
    if not (yes or as_json or dry_run):
        work.confirm()
    with ExitStack() as ends:
        if not dry_run:
            ends.enter_context(work.locked())
        if place:
            ends.enter_context(work.metered(*place))
        if once:
            raise typer.Exit(work.round(dry_run=dry_run))
        work.watch(dry_run=dry_run)


@app.command(
    epilog=examples(("autoscaler plan jaguar", "who goes where, what it costs"), ("autoscaler plan jaguar --json", ""))
)
def plan(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show what the next pass would decide: for every pod, every pool and every host. Changes nothing.

    Exit 1 when nothing could be decided; it says what did not answer.
    """
    from cli import autoscaler_view

    work = _Work(checked(cluster), as_json=as_json)
    raise typer.Exit(autoscaler_view.planned(work.cluster, work.loop().once(dry_run=True), as_json=as_json))


@app.command(
    epilog=examples(
        ("autoscaler explain jaguar vision/train-0", "why a pod waits"),
        ("autoscaler explain jaguar gpu-17", "why a host stays, or goes"),
    )
)
def explain(
    cluster: ClusterArg,
    what: Annotated[str, typer.Argument(metavar="POD", help="NAMESPACE/NAME of a pod, or the name of a node.")],
    as_json: JsonOpt = False,
) -> None:
    """Say why a pod waits and what it would take, or why a host stays. Changes nothing.

    Exit 2 when there is no such pod or node.
    """
    from cli import autoscaler_view

    work = _Work(checked(cluster), as_json=as_json)
    raise typer.Exit(autoscaler_view.explained(work.cluster, work.loop().once(dry_run=True), what, as_json=as_json))


@app.command(
    epilog=examples(
        ("autoscaler simulate jaguar monday.jsonl", "cost and waiting times"),
        ("autoscaler simulate jaguar monday.jsonl --seed 2", "other interruptions"),
    )
    + '\n\nA line of a trace: {"at": "10m", "name": "train", "count": 4, "gang": true,\n"runs": "3h", "requests": '
    '{"cpu": "80", "nvidia.com/gpu": 8}}'
)
def simulate(
    cluster: ClusterArg,
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="JSON lines; docs/how-to/simulate.md has their keys.")],
    seed: Annotated[int, typer.Option("--seed", help="Of when spot machines are taken away.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", help="Simulate no more than so many. Default: until all is over.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a trace of pods through the loop in simulated time. Reads the spec and the trace only.

    Machines boot after their documented times, spot ones are taken away as often
    as autoscaler.interruptions says. Prints what it costs, how long pods wait,
    which never start and why, and what it would have cost if no host had ever
    been taken away. Ends when nothing runs and nothing waits that may ever start.
    Exit 2 for a trace that can't be read; all of its errors are told at once.
    """
    from cli import autoscaler_view
    from controllers.autoscaler.choose import settings_of
    from controllers.autoscaler.simulate import run as simulation
    from controllers.autoscaler.simulate.trace import lines, read
    from operations.repair.look import limits_of

    if hours is not None and not 0 < hours <= _MOST_HOURS:
        raise typer.BadParameter(
            f"--hours: {hours} is no time to simulate; write hours above 0, {_MOST_HOURS:,} at most"
        )
    one = checked(cluster)
    arrivals = read(lines(trace), trace.name)
    setting = simulation.setting_of(one, settings_of(one), limits_of(one))
    with autoscaler_view.progress(len(arrivals), quiet=as_json) as watch:
        found = simulation.simulate(setting, arrivals, seed, watch("as it is"), most_hours=hours)
        without = simulation.without_scale_in(setting)
        kept = simulation.simulate(without, arrivals, seed, watch("without scale-in"), hours=found.hours)
    autoscaler_view.simulated(one, found, kept, as_json=as_json)


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
            f"Let pools {pools} of {self.cluster.name} grow and shrink by themselves?",
            again,
            see=("what it would do", f"autoscaler plan {self.cluster.name}"),
        )

    def _around(self) -> Around:
        from operations.repair.look import Around, limits_of
        from operations.repair.means import control_plane

        access = self._access
        return Around(self.cluster, access.api, lambda: control_plane(self.cluster, access), limits_of(self.cluster))

    def loop(self) -> Loop:
        from clients.lease import Lease
        from controllers.autoscaler.hands import Hands
        from controllers.autoscaler.look import look
        from controllers.autoscaler.run import Loop

        here = self._around()
        hands: Hands = Hands(self._access.api, self._groups, here.limits)
        lease = self._lease
        check = lease.check if isinstance(lease, Lease) else lambda: None
        return Loop(
            lambda memory: look(here, self._groups, self._settings, memory),
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
        with lease.holding(report=note):
            self._lease = lease
            yield

    @contextmanager
    def metered(self, address: str, port: int) -> Iterator[None]:
        from clients.telemetry import serving
        from controllers.autoscaler.metrics import Metrics, pages

        self._metrics = made = Metrics(time.time)
        stale_s = max(10 * self._settings.interval / 1000, 300.0)
        with serving(pages(made, stale_s), address, port) as port_:
            note(f"metrics at http://{address}:{port_}/metrics")
            yield

    def round(self, *, dry_run: bool) -> int:
        """One pass; an exit code."""
        from cli import autoscaler_view
        from controllers.autoscaler.metrics import Metrics
        from controllers.autoscaler.telling import Teller

        if self._view is None:
            self._view = autoscaler_view.View(self.cluster, as_json=self._as_json)
            self._teller = Teller(self._access.api)
        one = self.loop().once(dry_run=dry_run)
        if isinstance(self._metrics, Metrics):
            self._metrics.count(one)
        events = (0, 0) if dry_run else self._teller.tell(one)
        self._view.show(one, events)
        failed = bool(one.made.refused) or any(each.failed for each in one.done)
        return exits.FAILED if failed else exits.DONE

    def watch(self, *, dry_run: bool) -> None:
        """Passes without end. What an API or a cloud stands in the way of is told, and tried again."""
        from controllers.autoscaler.metrics import Metrics

        failed = self._metrics.failed if isinstance(self._metrics, Metrics) else lambda: None
        without_end(lambda: self.round(dry_run=dry_run), self._settings.interval / 1000, failed=failed)


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"--metrics: {text!r} is no address and port; write 127.0.0.1:9810")
    return host.strip("[]"), int(port)
