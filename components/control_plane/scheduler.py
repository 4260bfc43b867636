"""kube-scheduler's configuration, where its unit finds it. Pure."""

from __future__ import annotations

import yaml

from cluster.spec import Cluster
from components.control_plane import paths, sizing
from components.scheduling.profiles import configuration

FILE = "scheduler.yaml"
CONFIG = f"{paths.CONFIG}/{FILE}"
KUBECONFIG = "/run/credentials/kube-scheduler.service/kubeconfig"
"""Where systemd puts the unit's credential (systemd.exec(5), LoadCredential=): a file can't name a variable."""


def render(cluster: Cluster) -> str:
    """Text of the file."""
    nodes = sizing.most_nodes(cluster)
    made = configuration(
        cluster.spec.scheduling,
        KUBECONFIG,
        sizing.value("kube-scheduler", "kube-api-qps", nodes),
        sizing.value("kube-scheduler", "kube-api-burst", nodes),
    )
    return yaml.safe_dump(made, sort_keys=False)
