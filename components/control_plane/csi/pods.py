"""The pods of a driver: controllers on one pool of the region, and a plugin on each node of the region.

They all use the host's network. There they get an identity from the metadata service, which other pods can't reach, and they
work even if the pod network does not. Only probes listen, on loopback.
"""

from __future__ import annotations

from typing import Any

from cluster.images import sidecar as sidecar_image
from cluster.pools import POOL_LABEL, TRUSTED_POOL
from cluster.spec import Cloud, Cluster
from cluster.storage import controllers_pool
from components.control_plane.csi.drivers import AZURE_FOLDER, LIVENESS, REGISTRAR, Driver, HostPath, Sidecar
from components.control_plane.csi.rights import NAMESPACE, account
from components.control_plane.images import image
from components.control_plane.objects import Object
from components.control_plane.spreading import budget, leave_dead_hosts

CLOUD_CONFIG = "azure-cloud"
"""The ConfigMap with azure.json."""
_SOCKETS = "/csi"
_SOCKET = f"{_SOCKETS}/csi.sock"
_PLUGINS = "/var/lib/kubelet/plugins"
_CLOSED: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
_READ_ONLY: Object = {**_CLOSED, "readOnlyRootFilesystem": True}


def of_driver(cluster: Cluster, driver: Driver) -> tuple[Object, ...]:
    """Return the CSIDriver, its Deployment (with a disruption budget if it has two pods) and its DaemonSet."""
    replicas = min(2, cluster.spec.pools[str(controllers_pool(cluster.spec))].max)
    return (
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": driver.name},
            "spec": {
                "attachRequired": driver.attaches,
                "podInfoOnMount": False,
                "fsGroupPolicy": driver.fs_group_policy,
                "volumeLifecycleModes": ["Persistent"],
            },
        },
        *([budget(account(driver, "controller"), NAMESPACE, _labels(driver, "controller"))] if replicas > 1 else []),
        _deployment(cluster, driver, replicas),
        _daemon_set(cluster, driver),
    )


def _labels(driver: Driver, part: str) -> dict[str, str]:
    return {"app": account(driver, part)}


def _deployment(cluster: Cluster, driver: Driver, replicas: int) -> Object:
    labels = _labels(driver, "controller")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": account(driver, "controller"), "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas,
            # Two on one host would need the same port.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _controller(cluster, driver, labels)},
        },
    }


def _controller(cluster: Cluster, driver: Driver, labels: dict[str, str]) -> Object:
    pool = str(controllers_pool(cluster.spec))
    own = {"runAsUser": driver.user, "runAsGroup": driver.user, "fsGroup": driver.user, "runAsNonRoot": True}
    volumes: list[Object] = [{"name": "sockets", "emptyDir": {}}]
    if configured := cluster.spec.control_plane.cloud is Cloud.AZURE:
        volumes.append({"name": "cloud", "configMap": {"name": CLOUD_CONFIG}})
    main = _main(cluster, driver, "controller") | {"securityContext": _READ_ONLY if driver.user else _CLOSED}
    if configured:
        main["volumeMounts"].append({"name": "cloud", "mountPath": AZURE_FOLDER, "readOnly": True})
    return {
        **_pod(driver, "controller", "system-cluster-critical"),
        "nodeSelector": {"kubernetes.io/os": "linux", TRUSTED_POOL: pool},
        "tolerations": [*_pool_tolerations(cluster, pool), *leave_dead_hosts()],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        },
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **(own if driver.user else {})},
        "containers": [
            main,
            *(_sidecar(cluster, car, ("--leader-election", f"--timeout={s}")) for car, s in driver.sidecars),
            _liveness(cluster, driver, "controller"),
        ],
        "volumes": volumes,
    }


def _pool_tolerations(cluster: Cluster, pool: str) -> list[Object]:
    return [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": str(taint.effect)}
        for taint in cluster.spec.pools[pool].taints
    ]


def _daemon_set(cluster: Cluster, driver: Driver) -> Object:
    labels = _labels(driver, "node")
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": account(driver, "node"), "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": _plugin(cluster, driver)},
        },
    }


def _plugin(cluster: Cluster, driver: Driver) -> Object:
    in_region = {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
    registration = HostPath(f"{_PLUGINS}_registry", at="/registration")
    folders = (HostPath(f"{_PLUGINS}/{driver.name}", at=_SOCKETS, create=True), registration, *driver.host)
    main = _main(cluster, driver, "node")
    main["volumeMounts"] = [_mount(folder) for folder in folders if folder is not registration]
    registrar = _sidecar(cluster, REGISTRAR, (f"--kubelet-registration-path={_PLUGINS}/{driver.name}/csi.sock",))
    registrar["volumeMounts"].append({"name": _name(registration), "mountPath": registration.at})
    helper = {"name": "helper", "image": image(cluster, driver.image), "command": [driver.node_command]}
    return {
        **_pod(driver, "node", "system-node-critical"),
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_region]}}
        },
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            # The host must see the plugin's mounts, which takes a privileged container.
            main | {"securityContext": {"privileged": True}},
            registrar,
            _liveness(cluster, driver, "node"),
            *([helper | {"resources": _resources("64Mi")}] if driver.node_command else []),
        ],
        "volumes": [
            {"name": "sockets" if folder.at == _SOCKETS else _name(folder), "hostPath": _on_host(folder)}
            for folder in folders
        ],
    }


def _pod(driver: Driver, part: str, priority: str) -> Object:
    return {
        "serviceAccountName": account(driver, part),
        "priorityClassName": priority,
        "hostNetwork": True,
        "dnsPolicy": "Default",
    }


def _main(cluster: Cluster, driver: Driver, part: str) -> Object:
    """Return the driver's main container. Its first argument may be a word that selects the part."""
    arguments = driver.controller(cluster) if part == "controller" else driver.node
    word = [argument for argument in arguments[:1] if not argument.startswith("-")]
    environment = [{"name": name, "value": value} for name, value in driver.environment(cluster).items()]
    return {
        "name": driver.short,
        "image": image(cluster, driver.image),
        "args": [*word, f"--endpoint=unix://{_SOCKET}", "--v=2", *arguments[len(word) :]],
        "env": [{"name": "CSI_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, *environment],
        "livenessProbe": {
            "httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": driver.ports[part == "node"]},
            "initialDelaySeconds": 30,
            "periodSeconds": 30,
            "timeoutSeconds": 30,
            "failureThreshold": 5,
        },
        "resources": _resources("512Mi" if part == "controller" else driver.node_memory),
        "volumeMounts": [{"name": "sockets", "mountPath": _SOCKETS}],
    }


def _sidecar(cluster: Cluster, sidecar: Sidecar, more: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": sidecar.name,
        "image": image(cluster, sidecar_image(sidecar.name, sidecar.version)),
        "args": [f"--csi-address={_SOCKET}", "--v=2", *sidecar.arguments, *more],
        "resources": _resources("256Mi"),
        "securityContext": _READ_ONLY,
        "volumeMounts": [{"name": "sockets", "mountPath": _SOCKETS}],
    }


def _liveness(cluster: Cluster, driver: Driver, part: str) -> dict[str, Any]:
    port = driver.ports[part == "node"]
    return _sidecar(cluster, LIVENESS, (f"--http-endpoint=127.0.0.1:{port}", "--probe-timeout=25s"))


def _resources(limit: str | None) -> Object:
    return {"requests": {"cpu": "10m", "memory": "32Mi"}, **({"limits": {"memory": limit}} if limit else {})}


def _name(folder: HostPath) -> str:
    return folder.path.strip("/").replace("/", "-").replace("_", "-").replace(".", "-")


def _mount(folder: HostPath) -> Object:
    name = "sockets" if folder.at == _SOCKETS else _name(folder)
    shared = {"mountPropagation": "Bidirectional"} if folder.shared else {}
    return {"name": name, "mountPath": folder.at or folder.path, **shared}


def _on_host(folder: HostPath) -> Object:
    return {"path": folder.path, "type": "DirectoryOrCreate" if folder.create else "Directory"}
