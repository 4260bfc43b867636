"""flannel's net-conf.json."""

from __future__ import annotations

from typing import Any

from cluster.spec import Cluster, FlannelBackend
from network.mtu import encapsulation, pod_mtu

__all__ = ["net_conf", "pod_mtu"]


def net_conf(cluster: Cluster) -> dict[str, Any]:
    """The configuration that flanneld reads, as a JSON object.

    Nodes' ranges come from their Node objects (--kube-subnet-mgr), so SubnetLen is left out.
    flannel's MTU is that of the outer packet: it subtracts VXLAN's 50 bytes itself, for flannel.1
    and for /run/flannel/subnet.env (flannel 0.28.4, pkg/backend/vxlan/device.go, vxlan_network.go).
    host-gw has no MTU setting and reports the host's link: pods must be given `pod_mtu` there.

    Raises ValueError when the MTU does not fit (`pod_mtu`).
    """
    return {
        "Network": str(cluster.spec.network.pods),
        "EnableNFTables": True,
        "Backend": _backend(cluster),
    }


def _backend(cluster: Cluster) -> dict[str, Any]:
    flannel = cluster.spec.network.flannel
    if flannel.backend is FlannelBackend.HOST_GW:
        return {"Type": "host-gw"}
    return {
        "Type": "vxlan",
        "VNI": flannel.vni,
        "Port": flannel.port,
        "DirectRouting": flannel.direct_routing,
        "MTU": pod_mtu(cluster) + encapsulation(cluster),
    }
