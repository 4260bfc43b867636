"""`show vpn`, `vpn request` and `vpn configure`: settings of edge routers, and configuring those that run Debian."""

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
    """Print the settings for every tunnel's router. The gateway's public addresses are unknown before the first `up`."""
    loaded = checked(cluster)
    from operations import gateways

    all_tunnels = gateways.tunnel_settings(loaded, *gateways.gateway_addresses(loaded, lambda _: None))
    if as_json:
        print_json({"cluster": loaded.name, "tunnels": all_tunnels})
        return
    for tunnel in all_tunnels:
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


def _certificate(certificate: dict[str, Any]) -> dict[str, str]:
    state = certificate["wrong"] or _until(datetime.datetime.fromisoformat(certificate["expires"]))
    return {
        "shows": f"{certificate['file']}, with its subject as IKE identity: {state}",
        "trusts": f"{certificate['gateway_subject'] or 'known after `up`'}, if signed by the first of {certificate['ca']}",
    }


def _until(expires: datetime.datetime) -> str:
    days = (expires - datetime.datetime.now(datetime.UTC)).days
    return f"until {expires:%Y-%m-%d}, {days} days"


@examples(
    ("vpn request jaguar --dry-run", "show which have a key"),
    ("vpn request jaguar", "all its routers"),
    ("vpn request jaguar --router sjc1/edge-1", "one router"),
)
def request(
    cluster: ClusterArg,
    router: Annotated[
        list[str] | None,
        typer.Option("--router", metavar="SITE/ROUTER", help="Only these routers; separated by commas, or repeated."),
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Create edge routers' keys on the routers, and requests for their certificates.

    Existing keys are kept, so the same command renews a certificate. The request
    is written next to the certificate as <file>.csr. Keys never leave their
    routers.
    """
    loaded = checked(cluster)
    from operations import router_requests
    from operations.ssh import ssh_to

    with ssh_to(loaded) as ssh:
        requests = list(router_requests.request(loaded, ssh, words(router), dry_run=dry_run))
    if as_json:
        rows = [
            {"router": item.router, "file": str(item.file) if item.file else None, "why": item.why} for item in requests
        ]
        print_json({"cluster": loaded.name, "requests": rows, **({"dry_run": True} if dry_run else {})})
    for item in () if as_json else requests:
        text = f"would write {item.file} for {item.why}" if dry_run and item.file else item.file
        console.print(f"{item.router}: {text or 'none, ' + item.why}", markup=False)
    if not all(item.file for item in requests):
        raise typer.Exit(1)


@examples(
    ("vpn configure jaguar --dry-run --diff", "show what would change"),
    ("vpn configure jaguar", "all its routers; asks first"),
    ("vpn configure jaguar --without ibis", "if ibis is not built"),
)
def configure(
    cluster: ClusterArg,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="CLUSTER", help="Leave out this cluster's tunnels; separated by commas, or repeated."
        ),
    ] = None,
    diff: DiffOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Configure as edge routers the Debian machines that the spec names as `host`.

    A router gets its tunnels to every cluster that it joins. Rolls one router at
    a time. A second run changes nothing, and unchanged tunnels stay up. --diff
    never shows keys.
    """
    loaded = checked(cluster)
    from operations import gateways
    from operations.configure import workers_error

    steps = Steps(("clusters", "routers"), quiet=as_json)
    with steps.step("clusters"):
        work = gateways.plan(loaded, words(without), steps.detail)
    if not (yes or dry_run or as_json):
        again = f"vpn configure {loaded.name}"
        confirm(f"Configure {', '.join(work.inventory.hosts)}?", again, see=dry_run_of(again))
    with steps.step("routers"):
        report = gateways.configure(
            work, check=dry_run, diff=diff, watch=lambda progress: steps.detail(f"{progress.host}: {progress.task}")
        )
    if as_json:
        print_json(report.to_json())
    if not report.succeeded:
        raise workers_error(report, "a site keeps its other router") if not as_json else typer.Exit(1)
    if not as_json:
        _conclude(loaded.name, report, dry_run=dry_run, diff=diff)


def _conclude(cluster: str, report: RunReport, *, dry_run: bool, diff: bool) -> None:
    verb = "would change" if dry_run else "changed"
    console.print(f"{cluster}: {len(report.hosts)} routers, {report.changed} tasks {verb}", markup=False)
    for host, tasks in report.changes.items():
        console.print(f"{host}: {'; '.join(tasks)}", markup=False)
        if diff:
            console.print(Text(report.diffs.get(host, "").rstrip(), style="dim"))
