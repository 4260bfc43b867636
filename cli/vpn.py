"""`show vpn`, `vpn request` and `vpn configure`: the settings of edge routers, and configuring those that are ours."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli.asking import confirm, dry_run_of
from cli.options import ClusterArg, DiffOpt, DryOpt, JsonOpt, YesOpt, examples, words
from cli.output import Steps, console, print_json
from cli.specs import checked

if TYPE_CHECKING:
    from inventories.report import RunReport


def show(cluster: str, *, as_json: bool) -> None:
    """What every tunnel's router must be set to. Before the first `up` the gateway's public addresses are not known."""
    one = checked(cluster)
    from operations import gateways

    found = gateways.told(one, *gateways.known_gateways(one, lambda _: None))
    if as_json:
        print_json({"cluster": one.name, "tunnels": found})
        return
    for tunnel in found:
        _print(tunnel)


def _print(tunnel: dict[str, Any]) -> None:
    ike, esp, bgp, inside = tunnel["ike"], tunnel["esp"], tunnel["bgp"], tunnel["inside"]
    gateway = tunnel["gateway_address"] or "known after `up`"
    identity = "" if tunnel["certificate"] else " (also its IKE identity)"
    rows = {
        "router": f"{tunnel['router_address']}{identity}",
        "gateway": f"{gateway}{identity}",
        **(_certificate(tunnel["certificate"]) if tunnel["certificate"] else {"key": f"the secret {tunnel['key']}"}),
        "IKE": f"IKEv{ike['version']}, {ike['proposal']}, {ike['lifetime_s']} s",
        "ESP": f"{esp['proposal']}, {esp['lifetime_s']} s, selectors {tunnel['selectors']}",
        "inside": f"router {inside['router']}, gateway {inside['gateway']}",
        "BGP": f"AS {bgp['router_asn']} to AS {bgp['gateway_asn']}, timers {bgp['keepalive_s']} {bgp['hold_s']}, no BFD",
        "announce": ", ".join(bgp["announce"]),
        "accept": ", ".join(bgp["accept"]),
        "sizes": f"MTU {tunnel['mtu']}, MSS {tunnel['mss']}",
    }
    console.print(Text(f"{tunnel['site']} {tunnel['router']}, tunnel {tunnel['tunnel']}", style="bold"))
    for name, value in rows.items():
        console.print(f"  {name:<9} {value}", markup=False)


def _certificate(told: dict[str, Any]) -> dict[str, str]:
    state = told["wrong"] or _until(datetime.datetime.fromisoformat(told["expires"]))
    return {
        "shows": f"{told['file']}, with its subject as IKE identity: {state}",
        "believes": f"{told['gateway_subject'] or 'known after `up`'}, if signed by the first of {told['ca']}",
    }


def _until(expires: datetime.datetime) -> str:
    days = (expires - datetime.datetime.now(datetime.UTC)).days
    return f"until {expires:%Y-%m-%d}, {days} days"


@examples(
    ("vpn request jaguar --dry-run", "which have a key already?"),
    ("vpn request jaguar", "all its routers"),
    ("vpn request jaguar --router sjc1/edge-1", "one"),
)
def request(
    cluster: ClusterArg,
    router: Annotated[
        list[str] | None,
        typer.Option("--router", metavar="SITE/ROUTER", help="Only these; with commas, or given again."),
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Create the keys of edge routers on the routers, and requests for their certificates.

    An existing key is kept, so the same command renews a certificate. The request is
    written next to the certificate: <file>.csr. Keys never leave their routers.
    """
    one = checked(cluster)
    from operations import router_requests
    from operations.ssh import ssh_to

    with ssh_to(one) as ssh:
        found = list(router_requests.request(one, ssh, words(router), dry_run=dry_run))
    if as_json:
        rows = [
            {"router": each.router, "file": str(each.file) if each.file else None, "why": each.why} for each in found
        ]
        print_json({"cluster": one.name, "requests": rows, **({"dry_run": True} if dry_run else {})})
    for each in () if as_json else found:
        told = f"would write {each.file} for {each.why}" if dry_run and each.file else each.file
        console.print(f"{each.router}: {told or 'none, ' + each.why}", markup=False)
    if not all(each.file for each in found):
        raise typer.Exit(1)


@examples(
    ("vpn configure jaguar --dry-run --diff", "only look"),
    ("vpn configure jaguar", "all its routers; asks"),
    ("vpn configure jaguar --without ibis", "a cluster that is not built"),
)
def configure(
    cluster: ClusterArg,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="CLUSTER", help="Leave out a cluster's tunnels; with commas, or given again."
        ),
    ] = None,
    diff: DiffOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Configure the Debian machines that the spec names as `host` as edge routers.

    A router gets its tunnels to every cluster that it joins. Rolls one router after
    another. A second run changes nothing, and unchanged tunnels stay up.
    --diff never shows keys.
    """
    one = checked(cluster)
    from operations import gateways
    from operations.configure import workers_error

    steps = Steps(("clusters", "routers"), quiet=as_json)
    with steps.step("clusters"):
        work = gateways.plan(one, words(without), steps.detail)
    if not (yes or dry_run or as_json):
        again = f"vpn configure {one.name}"
        confirm(f"Configure {', '.join(work.inventory.hosts)}?", again, see=dry_run_of(again))
    with steps.step("routers"):
        report = gateways.configure(
            work, check=dry_run, diff=diff, watch=lambda seen: steps.detail(f"{seen.host}: {seen.task}")
        )
    if as_json:
        print_json(report.to_json())
    if not report.succeeded:
        raise workers_error(report, "a site keeps its other router") if not as_json else typer.Exit(1)
    if not as_json:
        _conclude(one.name, report, dry_run=dry_run, diff=diff)


def _conclude(cluster: str, report: RunReport, *, dry_run: bool, diff: bool) -> None:
    verb = "would change" if dry_run else "changed"
    console.print(f"{cluster}: {len(report.hosts)} routers, {report.changed} tasks {verb}", markup=False)
    for host, tasks in report.changes.items():
        console.print(f"{host}: {'; '.join(tasks)}", markup=False)
        if diff:
            console.print(Text(report.diffs.get(host, "").rstrip(), style="dim"))
