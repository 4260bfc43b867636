"""`show`: what a spec describes, and the outputs of a cluster's stack. Most subjects are modules with the same name."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from cli.options import JsonOpt, OutputOpt, examples, known_clusters


class Subject(StrEnum):
    """The subjects."""

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
    ("show topology examples/ibis > ibis.svg", "a drawing"),
    ("show topology examples/ibis -o ibis.html", "a page with tables"),
    ("show policies", "the rules of `validate`"),
    ("show schema > cluster.schema.json", "schema of cluster.yaml"),
    ("show schema hosts > hosts.schema.json", "schema of hosts.yaml"),
    ("show outputs jaguar", "the stack's outputs"),
    ("show vpn jaguar", "settings for edge routers"),
    ("show prices horus --json", "prices of pools"),
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
    """Show what a spec describes, and what a stack outputs. Changes nothing.

    flows: who talks to whom on which port, and why. Everything else is closed.
    docs/reference/flows.md explains the table.
    topology: an SVG drawing of zones, hosts, pools with their GPUs, RDMA rails,
    Ceph, etcds, tunnels and flows; --output FILE.html writes a page with tables.
    Equal specs give equal files.
    policies: the rules that `validate` applies to all resources of a stack.
    docs/reference/policies.md explains them.
    schema: the JSON Schema of cluster.yaml or hosts.yaml. An editor with a YAML
    language server completes and explains every key if the file starts with this
    line, which `init` writes:
    # yaml-language-server: $schema=../../cluster/schemas/cluster.schema.json
    outputs: the outputs of a built cluster's stack, as JSON, without secrets.
    vpn: the settings of every tunnel, for any router. Names keys, never prints
    them. Gateways have public addresses after the first `up`.
    prices: the price of a node in each pool in the region. The expander cannot
    choose if a pool without a price is offered.
    """
    if output and subject is not Subject.TOPOLOGY:
        raise typer.BadParameter("--output is only for topology")
    if as_json and subject is Subject.TOPOLOGY:
        raise typer.BadParameter("topology has no --json")
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


def _schema(name: str) -> None:
    from cli.output import write_out
    from cluster import schema

    if name not in _FILES:
        raise typer.BadParameter(f"there is no schema {name}; write {' or '.join(_FILES)}")
    write_out(schema.text("hosts" if name == "hosts" else "cluster"))
