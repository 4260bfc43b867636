"""What the image of a cluster's hosts must contain before they boot: packages, programs, features of the kernel. Pure.

Everything else is downloaded by the host itself. The payloads are the source, so nothing is listed twice; what the programs in
them call is in `BOOT` and `WORKER`, which tests compare with the programs.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from cluster import hardware
from cluster.artefacts import ArtefactSource
from cluster.files import HostConfig
from cluster.pools import Pool
from cluster.sources import without_checksum
from cluster.spec import Cluster
from components import control_plane, workers
from components.workers.roles import FOLDER
from etcd.render import host_configs
from network.addresses import AddressPlan

PROVIDERS: Mapping[str, str] = {
    **dict.fromkeys(("env", "install"), "coreutils"),
    "dpkg-query": "dpkg",
    **dict.fromkeys(("fsck.ext4", "mkfs.ext4"), "e2fsprogs"),
    "ip": "iproute2",
    **dict.fromkeys(("iptables", "iptables-restore"), "iptables"),
    **dict.fromkeys(("journalctl", "systemctl"), "systemd"),
    **dict.fromkeys(("lsblk", "wipefs"), "util-linux"),
    "modprobe": "kmod",
    **dict.fromkeys(("mount", "swapoff"), "mount"),
    "python3": "python3",
    "useradd": "passwd",
}
"""Program -> the Debian package that contains it."""
BOOT = (
    *("dpkg-query", "fsck.ext4", "ip", "journalctl", "lsblk", "mkfs.ext4"),
    *("mount", "python3", "systemctl", "useradd", "wipefs"),
)
"""What menagerie-boot and the programs of every payload call."""
WORKER = ("iptables", "modprobe", "swapoff")
"""What workers' programs call as well."""
GPU = ("nvidia-ctk", "nvidia-smi")
"""What a pool with GPUs needs from an image with a driver."""
_EVERY_KERNEL = ("CGROUPS", "EXT4_FS", "SECCOMP_FILTER")
_WORKER_KERNEL = (
    # Counters of pods' traffic; kernels before 6.2 need NFT_OBJREF as well, which later ones always have.
    "NF_TABLES_IPV4",
    *("BRIDGE", "BRIDGE_NETFILTER", "CGROUP_BPF", "OVERLAY_FS", "VETH", "VXLAN"),
    # kube-proxy in nftables mode.
    *("NFT_CT", "NFT_FIB_INET", "NFT_MASQ", "NFT_NAT", "NFT_NUMGEN", "NFT_REJECT", "NF_TABLES", "NF_TABLES_INET"),
    # iptables of flanneld, portmap, the kubelet and metadata-guard, on top of nftables.
    *(
        "IP_NF_TARGET_REJECT",
        "NETFILTER_XT_MATCH_ADDRTYPE",
        "NETFILTER_XT_MATCH_COMMENT",
        "NETFILTER_XT_MATCH_CONNTRACK",
        "NETFILTER_XT_MATCH_MULTIPORT",
    ),
    *("NETFILTER_XT_NAT", "NETFILTER_XT_TARGET_MASQUERADE", "NETFILTER_XT_MARK", "NFT_COMPAT"),
)
_ROUTER_KERNEL = ("NF_TABLES", "NF_TABLES_INET", "XFRM_INTERFACE", "XFRM_USER")
_STARTED = re.compile(r"^Exec\w+=[-+!@:]*(?:/usr)?/s?bin/(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Image:
    """What an image contains. programs: their names without folder. kernel: options that are built in or modules."""

    packages: frozenset[str]
    programs: frozenset[str]
    kernel: frozenset[str]

    @classmethod
    def of_manifest(cls, text: str) -> Image:
        """Return the image that a manifest of examples/images/manifest.py describes. Raises ValueError if it is none."""
        try:
            manifest = json.loads(text)
            return cls(*(frozenset(map(str, manifest[part])) for part in ("packages", "programs", "kernel")))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"not a manifest of an image, as examples/images/manifest.py prints it: {error!r}"
            ) from None


@dataclass(frozen=True)
class Needs:
    """What an image must contain. packages: Debian's names; kernel: options without CONFIG_, built in or as modules."""

    packages: tuple[str, ...]
    programs: tuple[str, ...]
    kernel: tuple[str, ...]

    def missing(self, image: Image) -> tuple[str, ...]:
        """Return what an image lacks, one phrase for each, as in "program nft"."""
        parts = (("package", self.packages, image.packages), ("program", self.programs, image.programs))
        lacking = [f"{kind} {name}" for kind, needed, there in parts for name in needed if name not in there]
        return (*lacking, *(f"kernel option CONFIG_{name}" for name in self.kernel if name not in image.kernel))


def of_cluster(cluster: Cluster, plan: AddressPlan) -> dict[str, Needs]:
    """Return kind of host -> what its image needs: "API servers", "hosts of etcd members", "edge routers", "pool <name>".

    Pools are those in the region. Packages of machines at sites are in `cluster.packages`.
    """
    source, cluster = ArtefactSource(None, defaultdict(str)), _pinned(cluster)
    members = host_configs(cluster, plan, source).values()
    return {
        "API servers": _of(control_plane.host_config(cluster, plan, source)),
        "hosts of etcd members": _of(*members),
        **{
            f"pool {name}": _of_pool(cluster, pool, workers.host_config(cluster, name, plan, source))
            for name, pool in cluster.spec.region_pools.items()
        },
        **({"edge routers": edge_router()} if any(site.vpn for site in cluster.spec.sites.values()) else {}),
    }


def _pinned(cluster: Cluster) -> Cluster:
    """Return the cluster with a digest for each image: a payload has none without, but needs do not depend on digests."""
    artefacts = cluster.spec.artefacts
    lacking = {lacking.source: "0" * 64 for lacking in without_checksum(cluster.spec)}
    pinned = artefacts.model_copy(update={"sha256": {**lacking, **artefacts.sha256}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": pinned})})


def edge_router() -> Needs:
    """Return the needs of a site's edge router. Role vpn_gateway installs the packages, unless its list is empty."""
    defaults = yaml.safe_load((FOLDER / "vpn_gateway" / "defaults" / "main.yml").read_text())
    return Needs(tuple(sorted(defaults["vpn_gateway_packages"])), ("ip", "python3", "systemctl"), _ROUTER_KERNEL)


def _of_pool(cluster: Cluster, pool: Pool, config: HostConfig) -> Needs:
    has_driver = hardware.runs_gpus(cluster.spec.control_plane.cloud, pool)
    return _of(config, programs=(*WORKER, *(GPU if has_driver else ())), kernel=_WORKER_KERNEL)


def _of(*configs: HostConfig, programs: tuple[str, ...] = (), kernel: tuple[str, ...] = ()) -> Needs:
    """Return the needs of the hosts of some payloads, and of programs that are named on their own."""
    texts = [file.text for config in configs for file in config.files if file.path.startswith("/etc/systemd/system/")]
    started = {name for text in texts for name in _STARTED.findall(text)}
    return Needs(
        tuple(sorted({name for config in configs for name in config.packages})),
        tuple(sorted({*BOOT, *programs, *started})),
        tuple(sorted({*_EVERY_KERNEL, *kernel})),
    )
