"""`vpn show`, `vpn request` and `vpn configure`: what edge routers must be told, and telling those that are ours."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli.asking import confirm
from cli.options import ClusterArg, JsonOpt, YesOpt, examples, words
from cli.output import Steps, console, print_json
from cli.specs import checked

if TYPE_CHECKING:
    from inventories.report import RunReport

app = typer.Typer(
    help="Tunnels from sites to a cluster: what edge routers must be told. docs/how-to/vpn.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=examples(("vpn show jaguar", "for the people of a router"), ("vpn show jaguar --json", "for a program"))
)
def show(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Print what every tunnel's router must be set to, for a router of any make.

    Before the first `up` the gateway's public addresses are not known. Keys are
    named, never printed.
    """
    from operations import gateways

    one = checked(cluster)
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


@app.command(
    epilog=examples(
        ("vpn request jaguar", "all its routers"),
        ("vpn request jaguar --router sjc1/edge-1", "one"),
    )
)
def request(
    cluster: ClusterArg,
    router: Annotated[
        list[str] | None, typer.Option("--router", metavar="SITE/ROUTER", help="Only these; several with commas.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Make the keys of edge routers on the routers, and requests for their certificates.

    A key that is there is kept, so the same command is for a renewal. The request
    is written beside the certificate: <file>.csr. Keys never leave their routers.
    """
    from operations import router_requests
    from operations.ssh import ssh_to

    one = checked(cluster)
    with ssh_to(one) as ssh:
        found = list(router_requests.request(one, ssh, words(router)))
    if as_json:
        rows = [
            {"router": each.router, "file": str(each.file) if each.file else None, "why": each.why} for each in found
        ]
        print_json({"cluster": one.name, "requests": rows})
    for each in () if as_json else found:
        console.print(f"{each.router}: {each.file or 'none, ' + each.why}", markup=False)
    if not all(each.file for each in found):
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        ("vpn configure jaguar --check --diff", "only look"),
        ("vpn configure jaguar", "all its routers; asks"),
        ("vpn configure jaguar --without ibis", "a cluster that is not built"),
    )
)
def configure(
    cluster: ClusterArg,
    check: Annotated[bool, typer.Option("--check", help="Say what would change, and change nothing.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the differences of files; never of keys.")] = False,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="CLUSTER", help="Leave out a cluster's tunnels; several with commas."),
    ] = None,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Make edge routers of the Debian machines that the spec names as `host`.

    A router gets its tunnels to every cluster that it joins. One router after
    another; a second run changes nothing; tunnels that stay the same stay up.
    """
    from operations import gateways
    from operations.configure import workers_error

    one = checked(cluster)
    steps = Steps(("clusters", "routers"), quiet=as_json)
    with steps.step("clusters"):
        work = gateways.plan(one, words(without), steps.detail)
    if not (yes or check or as_json):
        confirm(f"Configure {', '.join(work.inventory.hosts)}?", f"vpn configure {one.name}")
    with steps.step("routers"):
        report = gateways.configure(
            work, check=check, diff=diff, watch=lambda seen: steps.detail(f"{seen.host}: {seen.task}")
        )
    if as_json:
        print_json(report.to_json())
    if not report.succeeded:
        raise workers_error(report, "a site keeps its other router") if not as_json else typer.Exit(1)
    if not as_json:
        _conclude(one.name, report, check=check, diff=diff)


def _conclude(cluster: str, report: RunReport, *, check: bool, diff: bool) -> None:
    verb = "would change" if check else "changed"
    console.print(f"{cluster}: {len(report.hosts)} routers, {report.changed} tasks {verb}", markup=False)
    for host, tasks in report.changes.items():
        console.print(f"{host}: {'; '.join(tasks)}", markup=False)
        if diff:
            console.print(Text(report.diffs.get(host, "").rstrip(), style="dim"))
