"""The roles' variables that are computed from the model. No I/O.

Each of them is declared in its role's ``meta/argument_specs.yml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster import hardware, places, preflight
from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.images import PAUSE, by_digest
from cluster.kernel import command_line
from cluster.metrics.identity import SAN
from cluster.metrics.nodes import COLLECTORS
from cluster.pools import Pool
from cluster.spec import Cloud, Cluster
from components.control_plane.ports import KONNECTIVITY_HEALTH_PORT, NODE_METRICS_PORT
from network.render import FORWARDING, MODULES, NEIGHBOURS, NET_CONF, worker_files

Variables = dict[str, Any]

# Path of a network file -> the role that places it.
_FILE_ROLES = {MODULES: "base", FORWARDING: "base", NEIGHBOURS: "neighbours", NET_CONF: "flannel"}
# The registries that `Artefacts.registry` mirrors.
_MIRRORED = ("registry.k8s.io", "docker.io")


def of_all(
    cluster: Cluster, source: ArtefactSource, endpoint: str, ca_pem: str, serving_ca_pem: str, *, in_cloud: bool = False
) -> Variables:
    """Return the variables of all workers at sites, or of all workers in the region with `in_cloud`.

    endpoint: host:port of the API servers. ca_pem, serving_ca_pem: as in `ClusterOutputs`.

    Raises KeyError if `source` has no checksum for a program.
    """
    files = _files(worker_files(cluster, in_cloud=in_cloud))
    programs = catalogue(cluster.spec.kubernetes.version)
    return {
        "base_files": files["base"],
        "neighbours_files": files["neighbours"],
        "containerd_downloads": {
            name.replace("-", "_"): _download(source, programs[name])
            for name in ("containerd", "runc", "cni-plugins", "crictl")
        },
        "containerd_sandbox_image": by_digest(cluster.spec, PAUSE),
        "containerd_registry_mirrors": dict.fromkeys(_MIRRORED, source.registry) if source.registry else {},
        "flannel_downloads": {"flanneld": _download(source, programs["flanneld"])},
        "flannel_files": files["flannel"],
        **({"flannel_commands": {"iptables": "iptables"}} if in_cloud else {}),
        "kubelet_downloads": {name: _download(source, programs[name]) for name in ("kubelet", "kubeadm")},
        "kubelet_ca_pem": ca_pem,
        "kubelet_serving_ca_pem": serving_ca_pem,
        "kubelet_endpoint": endpoint,
        "kubelet_follower": "flanneld.service",
        "kubelet_max_pods": cluster.spec.network.max_pods,
        "node_metrics_downloads": {"node_exporter": _download(source, programs["node-exporter"])},
        "node_metrics_client": SAN,
        "node_metrics_port": NODE_METRICS_PORT,
        "node_metrics_collectors": list(COLLECTORS),
        "node_metrics_agent_port": KONNECTIVITY_HEALTH_PORT,
    }


def of_site(cluster: Cluster, name: str) -> Variables:
    """Return where the machines of a site get images; nothing if the site has no mirrors."""
    registries = cluster.spec.sites[name].registries
    if registries is None:
        return {}
    return {
        "containerd_registry_mirrors": {
            registry: list(mirrors) for registry, mirrors in registries.by_registry().items()
        },
        "containerd_registry_scheme": "http" if registries.plain_http else "https",
        "containerd_registry_upstream": registries.upstream,
        "containerd_registry_ca": cluster.authorities.get(name, ""),
    }


def of_pool(cloud: Cloud, name: str, pool: Pool) -> Variables:
    """Return the variables of a pool's workers."""
    return {
        "kubelet_labels": dict(sorted(places.of_pool(cloud, name, pool).items())),
        "kubelet_taints": [taint.model_dump(mode="json") for taint in preflight.taints(pool)],
        **({"boot_words": list(command_line(pool.kernel)), **_of_hardware(cloud, pool)} if pool.site else {}),
    }


def _of_hardware(cloud: Cloud, pool: Pool) -> Variables:
    """Return variables of roles gpu and preflight. Each role runs only if its first variable is set."""
    machine = hardware.of_pool(cloud, pool)
    branch = {"gpu_driver_branch": str(pool.driver_branch)} if pool.driver_branch else {}
    gpu = {"gpu_driver_source": "image", **branch} if machine and machine.gpus else {}
    expected = machine.model_dump(mode="json", exclude_none=True) if machine else {}
    return gpu | ({"preflight_expected": expected} if preflight.checked(pool) else {})


def of_host(address: str) -> Variables:
    """Return the variables of a single worker."""
    return {"base_address": address, "flannel_address": address, "kubelet_node_ip": address}


def _files(texts: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return role -> the network files that it places. Raises ValueError if no role places one of them."""
    unplaced = sorted(set(texts) - set(_FILE_ROLES))
    if unplaced:
        raise ValueError(f"no role places {', '.join(unplaced)}")
    placed: dict[str, list[dict[str, str]]] = {role: [] for role in _FILE_ROLES.values()}
    for path, text in texts.items():
        placed[_FILE_ROLES[path]].append({"path": path, "text": text})
    return placed


def _download(source: ArtefactSource, artefact: Artefact) -> dict[str, str]:
    return {"url": source.url(artefact), "sha256": source.checksum(artefact)}
