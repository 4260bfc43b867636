"""`show`: what a spec describes, and what the stack of a cluster hands over. Most subjects are modules of their names."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from cli.options import JsonOpt, OutputOpt, examples, known_clusters


class Subject(StrEnum):
    """What there is to show."""

    FLOWS = "flows"
    TOPOLOGY = "topology"
    POLICIES = "policies"
    SCHEMA = "schema"
    OUTPUTS = "outputs"
    VPN = "vpn"
    PRICES = "prices"


_FILES = ("cluster", "hosts")


@examples(
    ("show flows jaguar", "who talks to whom"),
    ("show topology lab > ibis.svg", "a picture"),
    ("show topology lab -o ibis.html", "a page with tables"),
    ("show policies", "the rules of `validate`"),
    ("show schema > cluster.schema.json", "of cluster.yaml"),
    ("show schema hosts > hosts.schema.json", "of hosts.yaml"),
    ("show outputs jaguar", "what the stack hands over"),
    ("show vpn jaguar", "for the people of a router"),
    ("show prices horus --json", "which pools have a price"),
)
def show(
    subject: Annotated[Subject, typer.Argument(metavar="SUBJECT", help=f"One of {', '.join(Subject)}.")],
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="CLUSTER",
            help="Name or path of a cluster. For schema: cluster or hosts.",
            autocompletion=known_clusters,
        ),
    ] = None,
    output: OutputOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Show what a spec describes, and what a stack hands over. Changes nothing.

    flows: who talks to whom on which port, and why. What is not in the table is
    closed. docs/reference/flows.md explains it.
    topology: an SVG drawing of zones, hosts, load balancer, etcds, tunnels and flows;
    --output FILE.html writes a page with tables. Equal specs give equal files.
    policies: the rules that `validate` applies to all resources of a stack.
    docs/reference/policies.md explains them.
    schema: the JSON Schema of cluster.yaml or hosts.yaml. An editor with a YAML language
    server completes and explains every key if the first line of the file is, as in
    one that `init` writes:
    # yaml-language-server: $schema=../../cluster/schemas/cluster.schema.json
    outputs: what the stack of a built cluster hands over, as JSON, without secrets.
    vpn: the settings of every tunnel, for a router of any make. Names keys, never
    prints them. Gateways have public addresses after the first `up`.
    prices: what a node of each pool in the region costs. The expander cannot choose
    where a pool without a price is offered.
    """
    if output and subject is not Subject.TOPOLOGY:
        raise typer.BadParameter("--output is for topology")
    if as_json and subject is Subject.TOPOLOGY:
        raise typer.BadParameter("a drawing has no --json")
    if subject is Subject.SCHEMA:
        _schema(cluster or _FILES[0])
    elif subject is Subject.POLICIES:
        from cli import policies

        if cluster:
            raise typer.BadParameter("policies apply to all clusters: name none")
        policies.show(as_json=as_json)
    elif cluster is None:
        raise typer.BadParameter(f"name a cluster: ./menagerie show {subject} CLUSTER")
    elif subject is Subject.TOPOLOGY:
        from cli import topology

        topology.show(cluster, output)
    else:
        import_module(f"cli.{subject}").show(cluster, as_json=as_json)


def _schema(of: str) -> None:
    from cli.output import write_out
    from cluster import schema

    if of not in _FILES:
        raise typer.BadParameter(f"there is no schema {of}; write {' or '.join(_FILES)}")
    write_out(schema.text("hosts" if of == "hosts" else "cluster"))
