"""What exporters serve: metrics, their labels, and how many series each has.

A series is one combination of a metric's labels. Counts are for planning: each says what it grows with (`Per`) and how many
series there are for one of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Per(StrEnum):
    """What the number of a metric's series grows with. `cluster.metrics.units` counts them in a spec."""

    TARGET = "target"
    """One endpoint of the job."""
    CLUSTER = "cluster"
    API_SERVER = "API server"
    MEMBER_OF_MAIN = "member of etcd main"
    MEMBER_OF_EVENTS = "member of etcd events"
    NODE = "node"
    GPU_NODE = "node with GPUs"
    GPU = "GPU"
    CPU = "logical CPU of a node"
    DISK = "disk of a node"
    FILESYSTEM = "file system of a node"
    INTERFACE = "network interface of a node"
    RDMA_PORT = "RDMA port"
    POD = "pod"
    CONTAINER = "container"
    NAMESPACE = "namespace"
    POOL = "pool in the region"
    CONTROLLER = "pod of a controller"
    AUTOSCALER = "autoscaler"
    DNS = "pod of CoreDNS"
    SITE_WITH_CEPH = "site with Ceph"
    CEPH_DISK = "disk of Ceph"


class Kind(StrEnum):
    """Types of the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric as its exporter names it.

    labels: without those that the scrape adds. times: series for one of `per`. buckets: of a histogram, without +Inf.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...] = ()
    per: Per = Per.TARGET
    times: float = 1
    buckets: int = 0

    def samples(self) -> Iterator[tuple[str, float]]:
        """Yield (name in the text format, series for one of `per`): a histogram has three names."""
        if self.kind is Kind.HISTOGRAM:
            yield f"{self.name}_bucket", self.times * (self.buckets + 1)
            yield f"{self.name}_sum", self.times
            yield f"{self.name}_count", self.times
        else:
            yield self.name, self.times


@dataclass(frozen=True)
class Exporter:
    """A program with an endpoint for metrics. source: where its names were read, with the version."""

    name: str
    source: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True)
class Job:
    """A scrape job: all endpoints of a kind, and how often they are asked. Rules and dashboards name jobs by `name`.

    targets: what there is an endpoint for. labels: what the scrape must add to each series besides job and instance.
    """

    name: str
    exporter: Exporter
    targets: Per
    every_s: int
    about: str
    labels: tuple[str, ...] = ()

    def samples(self) -> Mapping[str, tuple[Metric, float]]:
        """Return name in the text format -> (its metric, series for one of what it grows with)."""
        return {name: (metric, times) for metric in self.exporter.metrics for name, times in metric.samples()}


def gauge(name: str, *labels: str, per: Per = Per.TARGET, times: float = 1) -> Metric:
    return Metric(name, Kind.GAUGE, labels, per, times)


def counter(name: str, *labels: str, per: Per = Per.TARGET, times: float = 1) -> Metric:
    return Metric(name, Kind.COUNTER, labels, per, times)


def histogram(name: str, *labels: str, buckets: int, per: Per = Per.TARGET, times: float = 1) -> Metric:
    return Metric(name, Kind.HISTOGRAM, (*labels, "le"), per, times, buckets)


def gauges(names: str, *labels: str, per: Per = Per.TARGET, times: float = 1) -> tuple[Metric, ...]:
    """Return gauges with the same labels. names: separated by white space."""
    return tuple(gauge(name, *labels, per=per, times=times) for name in names.split())


def counters(names: str, *labels: str, per: Per = Per.TARGET, times: float = 1) -> tuple[Metric, ...]:
    """Return counters with the same labels. names: separated by white space."""
    return tuple(counter(name, *labels, per=per, times=times) for name in names.split())
