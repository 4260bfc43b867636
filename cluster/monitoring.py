"""Settings of a spec for watching the cluster: what a Prometheus keeps, its size, and who receives alerts.

Menagerie does not install a Prometheus yet, so every key is about one of your own: `check` compares its size with the cluster's
metrics, and `show` prints its rules, its dashboards and the routes of its Alertmanager.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster.model import Model
from cluster.quantities import DAY_MS, Bytes, DurationMs, Name, refuse

MOST_SERIES = 4_000_000
"""Series that one Prometheus is planned for: 31 GiB of memory at 8 KiB each (`cluster.metrics.sizes`)."""
_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_WEBHOOK = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%+:@=-]+)*/?"


def parse_metric(value: Any) -> Any:
    """Validate a metric's name (Prometheus, "Data model")."""
    if isinstance(value, str) and not re.fullmatch(_METRIC, value):
        hint = "write one name, with letters, digits, _ and :, for example node_load1; no selector and no pattern"
        raise refuse("MON-003", f"{value!r} isn't the name of a metric", hint)
    return value


def parse_webhook(value: Any) -> Any:
    """Validate the URL of a receiver. One with a user and password is refused without repeating it."""
    if isinstance(value, str) and re.match(r"[a-z]+://[^/\s]*@", value):
        hint = "remove everything before the @; Alertmanager's own configuration can have credentials"
        raise refuse("MON-005", "contains a user or password in clear text", hint)
    if isinstance(value, str) and not re.fullmatch(_WEBHOOK, value):
        hint = "write https://, a host and a path, for example https://alerts.example.org/hook"
        raise refuse("MON-005", f"{value!r} isn't the URL of a webhook", hint)
    return value


MetricName = Annotated[
    str, BeforeValidator(parse_metric), WithJsonSchema({"type": "string", "pattern": f"^{_METRIC}$"})
]
WebhookUrl = Annotated[
    str, BeforeValidator(parse_webhook), WithJsonSchema({"type": "string", "pattern": f"^{_WEBHOOK}$"})
]


class Severity(StrEnum):
    """How soon somebody must look at an alert."""

    CRITICAL = "critical"
    """At once, also at night."""
    WARNING = "warning"
    """In working hours."""


class Receiver(Model):
    """Where alerts are sent to, as Alertmanager's webhooks."""

    url: WebhookUrl
    """URL that alerts are posted to. Anybody who reads the spec reads it, so it must not contain a secret."""
    severity: Severity = Field(default=Severity.WARNING, strict=False)
    """warning: all alerts. critical: only those that somebody must look at at once."""


class Monitoring(Model):
    """What watches the cluster. Menagerie doesn't install it yet: `show` prints rules and dashboards for your own Prometheus."""

    enabled: bool = True
    """Whether `check` computes the size of the cluster's metrics, and `show` prints alerts and dashboards."""
    max_series: int = Field(default=MOST_SERIES, ge=1)
    """Most series that one Prometheus is to hold. `check` refuses a cluster with more."""
    memory: Bytes | None = None
    """Memory of the host or pod of Prometheus. `check` refuses less than the series need. Default: not compared."""
    retention: DurationMs = 15 * DAY_MS
    """Time for which Prometheus keeps samples. `show monitoring` computes the disk for it."""
    disk: Bytes | None = None
    """Size of the disk of Prometheus. `check` refuses a retention that doesn't fit. Default: not compared."""
    expected_pods: int | None = Field(default=None, ge=1, le=1_000_000)
    """Most pods at the same time. Default: as many as the nodes take, at most 150,000."""
    expected_namespaces: int = Field(default=1000, ge=1, le=100_000)
    """Most namespaces at the same time."""
    keep: tuple[MetricName, ...] = Field(default=(), strict=False)
    """Metrics that are kept in addition to those that alerts and dashboards use."""
    receivers: dict[Name, Receiver] = Field(default={})
    """Name -> where alerts are sent to."""
    dead_mans_switch: WebhookUrl | None = None
    """URL of a service that alerts when nothing is posted to it any more. Default: nobody notices that monitoring is down."""
