"""flannel's net-conf.json."""

from __future__ import annotations

from typing import Any

from cluster.mtu import VXLAN_OVERHEAD, pod_mtu
from cluster.network import FlannelBackend
from cluster.spec import Cluster, ClusterSpec


def net_conf(cluster: Cluster, *, in_cloud: bool = False) -> dict[str, Any]:
    """Return flanneld's configuration as a JSON object: for sites, or for the region with `in_cloud`.

    In the region there are no native routes. The networks of Azure and Google Cloud deliver by address and don't know the pods'
    addresses. AWS would deliver them only to machines whose source/destination check is off, and its security groups would have
    to let workers reach each other on every port. Each node decides about the packets that it sends, so sites and the region
    may differ.

    In the region flanneld masquerades with iptables: Debian's images for clouds have it, but no nft (docs/decisions/0108).

    The pod ranges of nodes come from their Node objects (--kube-subnet-mgr), so SubnetLen is left out.
    flannel's MTU is that of the outer packet: flannel subtracts VXLAN's 50 bytes itself, for flannel.1 and for
    /run/flannel/subnet.env (flannel 0.28.4, pkg/backend/vxlan/device.go, vxlan_network.go).
    host-gw has no MTU setting: it uses the MTU of the host's interface (pkg/backend/hostgw/hostgw.go).
    """
    return {
        "Network": str(cluster.spec.network.pods),
        "EnableNFTables": not in_cloud,
        "Backend": _backend(cluster.spec, in_cloud),
    }


def _backend(spec: ClusterSpec, in_cloud: bool) -> dict[str, Any]:
    flannel = spec.network.flannel
    if flannel.backend is FlannelBackend.HOST_GW:
        return {"Type": "host-gw"}
    return {
        "Type": "vxlan",
        "VNI": flannel.vni,
        "Port": flannel.port,
        "DirectRouting": flannel.direct_routing and not in_cloud,
        "MTU": pod_mtu(spec) + VXLAN_OVERHEAD,
    }
