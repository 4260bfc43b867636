"""`show`: its arguments."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import JsonOpt, OutputOpt, known_clusters
from cli.output import write_out
from cli.specs import checked
from cluster import schema


class Subject(StrEnum):
    """The subjects."""

    FLOWS = "flows"
    TOPOLOGY = "topology"
    POLICIES = "policies"
    SCHEMA = "schema"
    OUTPUTS = "outputs"
    VPN = "vpn"
    PRICES = "prices"
    MONITORING = "monitoring"
    ALERTS = "alerts"
    RECEIVERS = "receivers"
    DASHBOARDS = "dashboards"


_FILES = ("cluster", "hosts")
_WRITES = (Subject.TOPOLOGY, Subject.DASHBOARDS)
"""Subjects that --output takes a file or folder for. They have no other form."""
_OF_MONITORING = (Subject.MONITORING, Subject.ALERTS, Subject.RECEIVERS, Subject.DASHBOARDS)


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
    ("show monitoring jaguar", "sizes of its metrics"),
    ("show alerts jaguar > rules.yaml", "for your own Prometheus"),
    ("show receivers jaguar", "routes of its Alertmanager"),
    ("show dashboards jaguar -o dashboards", "a file each for Grafana"),
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
    closed: Annotated[
        bool, typer.Option("--all", help="alerts: also those whose endpoints no Prometheus reaches yet.")
    ] = False,
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
    monitoring: scrape jobs with their endpoints, series and kept metrics, computed
    from the spec; memory and disk that a Prometheus needs.
    alerts: alerts and recording rules as a rule file of Prometheus.
    receivers: Alertmanager's configuration, from monitoring.receivers.
    dashboards: Grafana's JSON; --output FOLDER writes a file for each.
    docs/how-to/monitoring.md explains these four.
    """
    if output and subject not in _WRITES:
        raise typer.BadParameter(f"--output is only for {' and '.join(_WRITES)}")
    if as_json and subject in _WRITES:
        raise typer.BadParameter(f"{subject} has no --json")
    if closed and subject is not Subject.ALERTS:
        raise typer.BadParameter("--all is only for alerts")
    if subject is Subject.SCHEMA:
        _schema(cluster or _FILES[0])
    elif subject is Subject.POLICIES:
        _policies(cluster, as_json=as_json)
    elif cluster is None:
        raise typer.BadParameter(f"name a cluster: ./menagerie show {subject} CLUSTER")
    elif subject in _OF_MONITORING:
        _monitoring(subject, cluster, output, closed=closed, as_json=as_json)
    else:
        _of_cluster(subject, cluster, output, as_json=as_json)


def _schema(name: str) -> None:
    if name not in _FILES:
        raise typer.BadParameter(f"there is no schema {name}; write {' or '.join(_FILES)}")
    write_out(schema.text("hosts" if name == "hosts" else "cluster"))


def _policies(cluster: str | None, *, as_json: bool) -> None:
    if cluster:
        raise typer.BadParameter("policies apply to all clusters: name none")
    from cli.actions import policies

    policies.show(as_json=as_json)


def _of_cluster(subject: Subject, cluster: str, output: Path | None, *, as_json: bool) -> None:
    """Show a subject. Imports only what it needs: flows and drawings need no engine."""
    loaded = checked(cluster)
    match subject:
        case Subject.TOPOLOGY:
            from cli.actions import topology

            topology.show(loaded, output)
        case Subject.FLOWS:
            from cli.actions import flows

            flows.show(loaded, as_json=as_json)
        case Subject.OUTPUTS:
            from cli.actions import outputs

            outputs.show(loaded, as_json=as_json)
        case Subject.PRICES:
            from cli.actions import prices

            prices.show(loaded, as_json=as_json)
        case _:
            from cli.actions import vpn

            vpn.show(loaded, as_json=as_json)


def _monitoring(subject: Subject, cluster: str, output: Path | None, *, closed: bool, as_json: bool) -> None:
    loaded = checked(cluster)
    from cli.actions import monitoring

    match subject:
        case Subject.MONITORING:
            monitoring.show_sizes(loaded, as_json=as_json)
        case Subject.ALERTS:
            monitoring.show_alerts(loaded, closed=closed, as_json=as_json)
        case Subject.RECEIVERS:
            monitoring.show_receivers(loaded, as_json=as_json)
        case _:
            monitoring.show_dashboards(loaded, output)
