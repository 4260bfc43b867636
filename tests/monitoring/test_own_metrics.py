"""The catalogues of our own programs have the metrics that the programs serve."""

from __future__ import annotations

import runpy
from collections.abc import Iterable
from pathlib import Path

import yaml
from menagerie_node_metrics import METRICS as OF_NODES
from menagerie_node_metrics import PREFIX as PREFIX_OF_NODES
from prometheus_client.parser import text_string_to_metric_families

from cluster.metrics import own
from cluster.metrics.model import Exporter
from cluster.metrics.nodes import NODE_EXPORTER
from cluster.spec import Cluster
from components.monitoring.endpoints import endpoints
from controllers import manifests
from controllers.autoscaler.metrics import GAUGES as OF_AUTOSCALER
from controllers.autoscaler.metrics import PREFIX as AUTOSCALER_PREFIX
from controllers.autoscaler.metrics import Metrics
from controllers.program.loop import GAUGES, PREFIX

ROLES = Path(__file__).parents[2] / "roles"
NEIGHBOURS, NODE_METRICS = ROLES / "neighbours" / "files" / "menagerie_neighbours.py", ROLES / "node_metrics"


def names(exporter: Exporter) -> set[str]:
    return {metric.name for metric in exporter.metrics}


def served(text: str) -> set[str]:
    """Return the names of a page of metrics; counters with their ending."""
    families: Iterable[object] = text_string_to_metric_families(text)
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}  # type: ignore[attr-defined]


def test_the_catalogue_has_the_metrics_of_controllers() -> None:
    counters = {"rounds_total", "changes_total", "failures_total"}
    assert names(own.CONTROLLER) == {f"{PREFIX}{name}" for name in {*GAUGES, *counters, "leader"}}


def test_the_catalogue_has_the_metrics_of_the_autoscaler() -> None:
    counters = served(Metrics(lambda: 0.0).page().text)
    assert len(counters) == 2
    assert names(own.AUTOSCALER) == counters | {f"{AUTOSCALER_PREFIX}{name}" for name in OF_AUTOSCALER}


def test_the_catalogue_has_the_metrics_that_hosts_write_for_node_exporter() -> None:
    program = runpy.run_path(str(NEIGHBOURS))
    written = served(program["metrics"]([program["Table"]("ipv4", 3, 0, 1024, None)]))
    written |= {f"{PREFIX_OF_NODES}{name}" for name in OF_NODES}
    own = {metric for metric in NODE_EXPORTER.metrics if metric.name.startswith("menagerie_")}
    assert {metric.name for metric in own} == written
    kinds = {metric.name: metric.kind for metric in own}
    assert {f"{PREFIX_OF_NODES}{name}": kind for name, (kind, _) in OF_NODES.items()}.items() <= kinds.items()


def test_the_number_of_units_in_the_catalogue_is_that_of_the_role() -> None:
    defaults = yaml.safe_load((NODE_METRICS / "defaults" / "main.yml").read_text())
    (metric,) = [each for each in NODE_EXPORTER.metrics if each.name == "menagerie_unit_active"]
    assert metric.times == len(defaults["node_metrics_units"])


def test_controllers_are_scraped_at_the_port_that_they_listen_on(lab: Cluster) -> None:
    assert endpoints(lab)["controllers"].port == manifests.PORT
