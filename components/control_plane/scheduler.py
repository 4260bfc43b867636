"""kube-scheduler: its unit, its flags and its configuration file. Pure."""

from __future__ import annotations

import yaml

from cluster.files import Consumer
from cluster.spec import Cluster
from components.control_plane import gangs, paths, sizing
from components.control_plane.flags import Flags, elected
from components.control_plane.service_unit import Unit, command, kubeconfig
from components.scheduling.profiles import configuration

_UNIT, _ACCOUNT = "kube-scheduler.service", "kube-scheduler"
FILE = "scheduler.yaml"
CONFIG = f"{paths.CONFIG}/{FILE}"
KUBECONFIG = "/run/credentials/kube-scheduler.service/kubeconfig"
"""Where systemd puts the unit's credential (systemd.exec(5), LoadCredential=). The full path, because the configuration file
can't use a variable."""


def unit(cluster: Cluster) -> Unit:
    """Return its unit."""
    return Unit(
        name=_UNIT,
        description="Kubernetes scheduler",
        words=command("kube-scheduler", flags(cluster)),
        user=_ACCOUNT,
        credentials=(("kubeconfig", kubeconfig("scheduler")),),
    )


def consumer() -> Consumer:
    """Return what it follows."""
    return Consumer(_UNIT, (kubeconfig("scheduler"),))


def flags(cluster: Cluster, config: str = CONFIG, credential: str = KUBECONFIG) -> Flags:
    """Return the flags of kube-scheduler: CIS 1.4. config: path of its configuration file, which has all other
    settings. credential: path of its kubeconfig.

    The file also turns profiling off; the flag is there because kube-bench looks for it.
    """
    return {"config": config, **elected(credential), **gangs.flags(cluster, "kube-scheduler")}


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
