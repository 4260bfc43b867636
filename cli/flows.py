"""`show flows`: who talks to whom on which port, for one cluster."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from cli.output import console, print_json
from cli.specs import checked
from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.flows import table
from components.flows.flow import Flow, Protocol, into, roles, spans
from sandbox.lab import plan


def show(name: str, *, as_json: bool) -> None:
    """Print the cluster's table of flows, by who is reached."""
    cluster = checked(name, allow_unknown=True)
    found = table.flows(cluster, source(cluster), plan.BUCKETS_URL if cluster.is_lab else None)
    if as_json:
        print_json({"cluster": cluster.name, "flows": [asdict(flow) for flow in found]})
        return
    sources = max(len(flow.source) for flow in found)
    for role in roles(found):
        if taken := into(found, role):
            console.print(Text(f"to {role}", style="bold"))
            for flow in taken:
                console.print(Text.assemble(f"  {flow.source:<{sources}}  {_ports(flow):<14}", (flow.why, "dim")))
    console.print(f"{len(found)} flows; what is not among them is closed")


def source(cluster: Cluster) -> ArtefactSource:
    """A lab's hosts download from it; those of other clusters from the upstream sites."""
    return ArtefactSource(plan.MIRROR_URL, {}, plan.REGISTRY) if cluster.is_lab else table.UPSTREAM


def _ports(flow: Flow) -> str:
    if flow.protocol is Protocol.ALL:
        return "everything"
    return f"{flow.protocol} {', '.join(spans(flow.ports))}"
