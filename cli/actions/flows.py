"""`show flows`: who talks to whom on which port, for one cluster."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from cli.output import console, print_json
from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.flows import table
from components.flows.flow import Flow, Protocol, into, roles, spans
from sandbox.lab import plan


def show(cluster: Cluster, *, as_json: bool) -> None:
    """Print the cluster's table of flows, by destination."""
    flows = table.flows(cluster, source(cluster), plan.BUCKETS_URL if cluster.is_lab else None)
    if as_json:
        print_json({"cluster": cluster.name, "flows": [asdict(flow) for flow in flows]})
        return
    sources = max(len(flow.source) for flow in flows)
    for role in roles(flows):
        if accepted := into(flows, role):
            console.print(Text(f"to {role}", style="bold"))
            for flow in accepted:
                console.print(Text.assemble(f"  {flow.source:<{sources}}  {_ports(flow):<14}", (flow.why, "dim")))
    console.print(f"{len(flows)} flows; everything else is closed")


def source(cluster: Cluster) -> ArtefactSource:
    """Return where hosts download: a lab's hosts from the lab, all others from upstream."""
    return ArtefactSource(plan.MIRROR_URL, {}, plan.REGISTRY) if cluster.is_lab else table.UPSTREAM


def _ports(flow: Flow) -> str:
    if flow.protocol is Protocol.ALL:
        return "everything"
    return f"{flow.protocol} {', '.join(spans(flow.ports))}"
