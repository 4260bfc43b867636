"""What is kept is what rules and dashboards read, and series follow from the spec."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.load import load_cluster
from cluster.metrics import kept, sizes
from cluster.metrics.jobs import BY_NAME, JOBS
from cluster.metrics.model import Kind, Per, histogram
from cluster.metrics.own import SCRAPES
from cluster.metrics.units import most_nodes, most_pods, units
from cluster.monitoring import MOST_SERIES
from cluster.pools import Host
from cluster.spec import Cluster, ClusterSpec
from tests.monitoring import expressions

SPECS = Path(__file__).parents[1] / "specs"


def on_prem(hosts: int, monitoring: dict[str, Any] | None = None, kind: str = "dgx-h100") -> Cluster:
    """Return a cluster with so many machines of a kind at a site."""
    spec = yaml.safe_load((SPECS / "valid-onprem.yaml").read_text())
    spec["pools"]["gpu"]["hardware"] = kind
    spec["monitoring"] = monitoring or {}
    host = Host.model_validate({"name": "gpu-1", "rack": "r1", "address": "10.8.0.11"})
    return Cluster(spec=ClusterSpec.model_validate(spec), hosts={"gpu": (host,) * hosts})


def test_the_kept_metrics_are_those_that_rules_and_dashboards_read() -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites the file; review the difference."""
    read = json.dumps(expressions.kept(), indent=1) + "\n"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        kept.FILE.write_text(read)
    assert kept.FILE.read_text() == read, "run `make golden`"
    assert set(kept.used()) == set(BY_NAME)


def test_7500_nodes_of_8_gpus_have_at_most_4_million_series() -> None:
    cluster = on_prem(7500)
    counts = units(cluster)
    assert (counts[Per.NODE], counts[Per.GPU], counts[Per.POD]) == (7500, 60_000, 150_000)
    series = sizes.total(sizes.sizes(cluster))
    assert 2_000_000 < series <= MOST_SERIES == 4_000_000


def test_a_kept_metric_adds_its_series_and_a_metric_of_every_cpu_would_not_fit() -> None:
    without, with_it = (sizes.total(sizes.sizes(on_prem(7500, {"keep": keep}))) for keep in ([], ["node_load1"]))
    assert with_it - without == 7500
    assert sizes.total(sizes.sizes(on_prem(7500, {"keep": ["node_cpu_seconds_total"]}))) - without == 7500 * 224 * 8


def test_a_kept_histogram_counts_all_its_buckets() -> None:
    metric = histogram("seconds", "verb", buckets=14, times=3)
    assert dict(metric.samples()) == {"seconds_bucket": 45, "seconds_sum": 3, "seconds_count": 3}
    assert (metric.kind, metric.labels) == (Kind.HISTOGRAM, ("verb", "le"))
    more = {"keep": ["kubelet_pod_start_sli_duration_seconds_bucket"]}
    assert sizes.total(sizes.sizes(on_prem(10, more))) - sizes.total(sizes.sizes(on_prem(10))) == 10 * 26


def test_a_metric_that_is_kept_twice_counts_once() -> None:
    used = kept.used()["kubelet"][0]
    assert kept.kept_by(BY_NAME["kubelet"], [used, used]) == kept.used()["kubelet"]
    assert kept.kept_by(BY_NAME["cadvisor"]) == ()


def test_every_endpoint_has_the_series_of_its_scrape() -> None:
    (kubelets,) = (size for size in sizes.sizes(on_prem(10)) if size.job.name == "kubelet")
    assert (kubelets.targets, kubelets.series) == (10, 10 * (len(kubelets.kept) + len(SCRAPES.metrics)))


def test_jobs_without_endpoints_or_without_kept_metrics_are_left_out(lab: Cluster) -> None:
    names = {size.job.name for size in sizes.sizes(lab)}
    assert {"gpu", "ceph", "cadvisor", "controllers", "autoscaler"}.isdisjoint(names)
    assert {"etcd-main", "etcd-events", "kube-apiserver", "node", "rules"} <= names
    assert "cadvisor" in {size.job.name for size in sizes.sizes(on_prem(10, {"keep": ["container_memory_rss"]}))}


def test_pods_are_those_that_fit_on_nodes_or_that_the_spec_promises() -> None:
    assert most_pods(on_prem(10)) == 1100
    assert most_pods(on_prem(10, {"expected_pods": 300})) == 300
    assert most_pods(on_prem(10, {"expected_pods": 5000})) == 1100
    assert most_pods(on_prem(7500)) == 150_000
    assert most_nodes(on_prem(10)) == {"gpu": 10}


def test_machines_of_unknown_kind_count_as_large_ones_without_gpus() -> None:
    spec = yaml.safe_load((SPECS / "valid-onprem.yaml").read_text())
    host = Host.model_validate({"name": "gpu-1", "rack": "r1", "address": "10.8.0.11"})
    counts = units(Cluster(spec=ClusterSpec.model_validate(spec), hosts={"gpu": (host,) * 3}))
    assert (counts[Per.CPU], counts[Per.DISK], counts[Per.GPU], counts[Per.RDMA_PORT]) == (3 * 256, 3 * 11, 0, 0)


@pytest.mark.parametrize("name", ["valid-autoscaler", "valid-aws", "valid-ceph", "valid-roce", "valid-smallest"])
def test_every_valid_spec_has_few_series(name: str) -> None:
    cluster = load_cluster(SPECS / f"{name}.yaml")
    jobs = sizes.sizes(cluster)
    assert 0 < sizes.total(jobs) <= MOST_SERIES
    assert ("ceph" in {size.job.name for size in jobs}) == (name == "valid-ceph")
    assert ("autoscaler" in {size.job.name for size in jobs}) == (name == "valid-autoscaler")


def test_memory_and_disk_follow_from_series_and_retention() -> None:
    jobs = sizes.sizes(on_prem(7500))
    series = sizes.total(jobs)
    assert sizes.memory(series) == series * 8192
    a_day = sizes.disk(jobs, 86_400_000)
    per_s = sum(size.series / size.job.every_s for size in jobs)
    assert a_day == pytest.approx(per_s * 86_400 * 2 / 0.8, rel=1e-6)
    assert sizes.disk(jobs, 15 * 86_400_000) == pytest.approx(15 * a_day, rel=1e-6)


def test_no_exporter_has_a_metric_twice_and_every_job_has_its_own_name() -> None:
    assert len(BY_NAME) == len(JOBS)
    for job in JOBS:
        assert len({metric.name for metric in job.exporter.metrics}) == len(job.exporter.metrics), job.name
