"""The network's files on a worker."""

from __future__ import annotations

import json

from cluster.spec import Cluster
from network.flannel import net_conf
from network.neighbours import sysctl_text, thresholds

NEIGHBOURS = "/etc/sysctl.d/90-menagerie-neighbours.conf"
FORWARDING = "/etc/sysctl.d/80-menagerie-forwarding.conf"
MODULES = "/etc/modules-load.d/menagerie-network.conf"
NET_CONF = "/etc/kube-flannel/net-conf.json"

# A pod that reaches a pod of its own node through a Service sends and receives across one bridge.
# Without br_netfilter the answer takes the bridge past connection tracking, and is dropped by the
# asker as coming from an address it never spoke to.
_FORWARDING_TEXT = """\
# Pods' packets are routed by this host, and seen by kube-proxy's rules on the bridge as well.
net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
"""


def worker_files(cluster: Cluster, *, in_cloud: bool = False) -> dict[str, str]:
    """Path -> text, the same for all workers at sites, or for all in the cloud with `in_cloud`."""
    return {
        MODULES: "br_netfilter\n",
        FORWARDING: _FORWARDING_TEXT,
        NEIGHBOURS: sysctl_text(thresholds(cluster, in_cloud=in_cloud)),
        NET_CONF: json.dumps(net_conf(cluster, in_cloud=in_cloud), indent=2) + "\n",
    }
