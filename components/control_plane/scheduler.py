"""kube-scheduler's configuration file. Pure."""

from __future__ import annotations

import yaml

from cluster.spec import Cluster
from components.control_plane import paths, sizing
from components.scheduling.profiles import configuration

FILE = "scheduler.yaml"
CONFIG = f"{paths.CONFIG}/{FILE}"
KUBECONFIG = "/run/credentials/kube-scheduler.service/kubeconfig"
"""Where systemd puts the unit's credential (systemd.exec(5), LoadCredential=). The full path, because the configuration file
can't use a variable."""


def render(cluster: Cluster) -> str:
    """Return the text of the file."""
    nodes = sizing.most_nodes(cluster)
    document = configuration(
        cluster.spec.scheduling,
        KUBECONFIG,
        sizing.value("kube-scheduler", "kube-api-qps", nodes),
        sizing.value("kube-scheduler", "kube-api-burst", nodes),
    )
    return yaml.safe_dump(document, sort_keys=False)
