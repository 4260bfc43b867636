"""The network configuration files of a worker."""

from __future__ import annotations

import json

from cluster.spec import Cluster
from network.flannel import net_conf
from network.neighbours import sysctl_text, thresholds

NEIGHBOURS = "/etc/sysctl.d/90-menagerie-neighbours.conf"
FORWARDING = "/etc/sysctl.d/80-menagerie-forwarding.conf"
MODULES = "/etc/modules-load.d/menagerie-network.conf"
NET_CONF = "/etc/kube-flannel/net-conf.json"

# When a pod reaches a pod on its own node through a Service, both directions cross one bridge. Without br_netfilter, the reply
# bypasses connection tracking on the bridge, and the client drops it: it comes from an address that the client never contacted.
_FORWARDING_TEXT = """\
# Pods' packets are routed by this host, and seen by kube-proxy's rules on the bridge as well.
net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
"""


def worker_files(cluster: Cluster, *, in_cloud: bool = False) -> dict[str, str]:
    """Return path -> text, the same for all workers at sites, or for all in the region with `in_cloud`."""
    return {
        MODULES: "br_netfilter\n",
        FORWARDING: _FORWARDING_TEXT,
        NEIGHBOURS: sysctl_text(thresholds(cluster, in_cloud=in_cloud)),
        NET_CONF: json.dumps(net_conf(cluster, in_cloud=in_cloud), indent=2) + "\n",
    }
