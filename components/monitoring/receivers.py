"""Routes and receivers of an Alertmanager, from the receivers of a spec."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from cluster.monitoring import Monitoring, Severity
from cluster.spec import Cluster
from components.control_plane.objects import Object
from components.monitoring.alerts.own import DEAD_MANS_SWITCH

_NOBODY = "nobody"
_SWITCH = "dead-mans-switch"


def configuration(cluster: Cluster) -> Object:
    """Return Alertmanager's configuration for the alerts of a cluster.

    Alerts of one name and cluster make one message. While the API is down, warnings of the cluster are held back.
    """
    settings = cluster.spec.monitoring
    return {
        "route": {
            "receiver": _NOBODY,
            "group_by": ["cluster", "alertname"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": list(_routes(cluster.name, settings)),
        },
        "inhibit_rules": [
            {
                "source_matchers": ['alertname="ApiDown"'],
                "target_matchers": ['severity="warning"'],
                "equal": ["cluster"],
            },
            {
                "source_matchers": ['alertname=~"NodesNotReadyTogether|SiteCutOff"'],
                "target_matchers": ['alertname=~"NodeNotReady|TargetsDown|AddOnDown"'],
                "equal": ["cluster"],
            },
        ],
        "receivers": [{"name": _NOBODY}, *_receivers(settings)],
    }


def _routes(cluster: str, settings: Monitoring) -> Iterator[Object]:
    """Yield the routes: the dead man's switch to its own service, or to nobody, and the rest to each receiver."""
    own = f'cluster="{cluster}"'
    yield {
        "receiver": _SWITCH if settings.dead_mans_switch else _NOBODY,
        "matchers": [f'alertname="{DEAD_MANS_SWITCH}"', own],
        "group_wait": "0s",
        "group_interval": "1m",
        "repeat_interval": "1m",
    }
    for name, receiver in settings.receivers.items():
        only = ['severity="critical"'] if receiver.severity is Severity.CRITICAL else []
        yield {"receiver": name, "matchers": [own, *only], "continue": True}


def _receivers(settings: Monitoring) -> Iterator[Object]:
    for name, receiver in settings.receivers.items():
        yield {"name": name, "webhook_configs": [{"url": receiver.url, "send_resolved": True}]}
    if settings.dead_mans_switch:
        yield {"name": _SWITCH, "webhook_configs": [{"url": settings.dead_mans_switch, "send_resolved": False}]}


def text(cluster: Cluster) -> str:
    """Return the configuration in YAML."""
    head = f"# Alertmanager's routes for cluster {cluster.name}, by `./menagerie show receivers {cluster.name}`.\n"
    return head + yaml.safe_dump(configuration(cluster), sort_keys=False, width=130, allow_unicode=True)
