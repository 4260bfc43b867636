"""`show vpn`, `vpn request` and `vpn configure`: settings of edge routers, and configuring those that run Debian."""

from __future__ import annotations

import datetime
from typing import Any

import typer
from rich.text import Text

from cli.asking import confirm, dry_run_of
from cli.output import Steps, console, print_json
from cluster.spec import Cluster
from inventories.report import RunReport
from operations import gateways, router_requests
from operations.configure import workers_error
from operations.ssh import ssh_to


def show(cluster: Cluster, *, as_json: bool) -> None:
    """Print the settings for every tunnel's router. The gateway's public addresses are unknown before the first `up`."""
    all_tunnels = gateways.tunnel_settings(cluster, *gateways.gateway_addresses(cluster, lambda _: None))
    if as_json:
        print_json({"cluster": cluster.name, "tunnels": all_tunnels})
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


def request(cluster: Cluster, routers: tuple[str, ...], *, dry_run: bool, as_json: bool) -> None:
    """Create keys on these routers, or on all, and write their requests."""
    with ssh_to(cluster) as ssh:
        requests = list(router_requests.request(cluster, ssh, routers, dry_run=dry_run))
    if as_json:
        rows = [
            {"router": item.router, "file": str(item.file) if item.file else None, "why": item.why} for item in requests
        ]
        print_json({"cluster": cluster.name, "requests": rows, **({"dry_run": True} if dry_run else {})})
    for item in () if as_json else requests:
        text = f"would write {item.file} for {item.why}" if dry_run and item.file else item.file
        console.print(f"{item.router}: {text or 'none, ' + item.why}", markup=False)
    if not all(item.file for item in requests):
        raise typer.Exit(1)


def configure(
    cluster: Cluster, without: tuple[str, ...], *, diff: bool, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Configure the routers. without: clusters whose tunnels are left out."""
    steps = Steps(("clusters", "routers"), quiet=as_json)
    with steps.step("clusters"):
        work = gateways.plan(cluster, without, steps.detail)
    if not (yes or dry_run):
        again = f"vpn configure {cluster.name}"
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
        _conclude(cluster.name, report, dry_run=dry_run, diff=diff)


def _conclude(cluster: str, report: RunReport, *, dry_run: bool, diff: bool) -> None:
    verb = "would change" if dry_run else "changed"
    console.print(f"{cluster}: {len(report.hosts)} routers, {report.changed} tasks {verb}", markup=False)
    for host, tasks in report.changes.items():
        console.print(f"{host}: {'; '.join(tasks)}", markup=False)
        if diff:
            console.print(Text(report.diffs.get(host, "").rstrip(), style="dim"))
