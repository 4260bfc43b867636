"""DaemonSets for nodes with GPUs: NVIDIA's device plugin, and the exporter of DCGM's metrics. Pure.

Both run only on nodes that their kubelet labelled with `GPU_LABEL`. Role gpu prepares the GPUs there: without its CDI
specification and driver, the plugin exits at once ("CDI options are only supported on NVML-based systems").
"""

from __future__ import annotations

from cluster import hardware
from cluster.images import DEVICE_PLUGIN, EXPORTER
from cluster.places import GPU_LABEL
from cluster.spec import Cluster
from components.control_plane.images import image
from components.control_plane.objects import Object

EXPORTER_PORT = 9400
_HOST_DCGM = "localhost:5555"
_KUBELET = "/var/lib/kubelet"


PLUGIN, DCGM = "nvidia-device-plugin", "dcgm-exporter"


def workloads(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the DaemonSets if the spec has machines with GPUs. Unlike `objects`, this needs no image digests."""
    cloud = cluster.spec.control_plane.cloud
    return (PLUGIN, DCGM) if any(hardware.runs_gpus(cloud, pool) for pool in cluster.spec.pools.values()) else ()


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return the DaemonSets if the spec has machines with GPUs."""
    if not workloads(cluster):
        return ()
    plugin, exporter = image(cluster, DEVICE_PLUGIN), image(cluster, EXPORTER)
    return _daemon_set(PLUGIN, _plugin(plugin)), _daemon_set(DCGM, _exporter(exporter))


def _daemon_set(name: str, pod: Object) -> Object:
    labels = {"k8s-app": name}
    common = {
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {GPU_LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": common | pod},
        },
    }


def _env(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _mounts(places: dict[str, tuple[str, str, bool]]) -> tuple[list[Object], list[Object]]:
    """Return volumes and their mounts. places: name -> (path on the host, path in the container, read-only)."""
    volumes = [{"name": name, "hostPath": {"path": host}} for name, (host, _, _) in places.items()]
    mounts = [{"name": name, "mountPath": path, "readOnly": read_only} for name, (_, path, read_only) in places.items()]
    return volumes, mounts


def _plugin(image: str) -> Object:
    """Return the plugin's pod.

    It opens device files of GPUs. Only a privileged container may do that, unless a device plugin assigned them to it.
    """
    volumes, mounts = _mounts(
        {
            "device-plugins": (f"{_KUBELET}/device-plugins", f"{_KUBELET}/device-plugins", False),
            "driver-root": ("/", "/driver-root", True),
            "cdi": ("/var/run/cdi", "/var/run/cdi", False),
        }
    )
    container = {
        "name": "plugin",
        "image": image,
        "env": _env(
            {
                "DEVICE_LIST_STRATEGY": "cdi-cri",
                "FAIL_ON_INIT_ERROR": "false",
                "MIG_STRATEGY": "mixed",
                "NVIDIA_DRIVER_ROOT": "/",
                "NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook",
            }
        ),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
        "volumeMounts": mounts,
    }
    return {"containers": [container], "volumes": volumes}


def _exporter(image: str) -> Object:
    """Return the exporter's pod.

    It queries the host's DCGM, so it needs neither devices nor privileges, and the kubelet for which pod has which GPU.
    """
    pod_resources = f"{_KUBELET}/pod-resources"
    volumes, mounts = _mounts({"pod-resources": (pod_resources, pod_resources, True)})
    probe = {"httpGet": {"path": "/health", "port": EXPORTER_PORT}, "periodSeconds": 30, "timeoutSeconds": 5}
    container = {
        "name": "exporter",
        "image": image,
        "env": _env(
            {
                "DCGM_REMOTE_HOSTENGINE_INFO": _HOST_DCGM,
                "DCGM_EXPORTER_KUBERNETES": "true",
                "DCGM_EXPORTER_LISTEN": f":{EXPORTER_PORT}",
            }
        ),
        "ports": [{"name": "metrics", "containerPort": EXPORTER_PORT, "protocol": "TCP"}],
        "livenessProbe": {**probe, "initialDelaySeconds": 60, "failureThreshold": 4},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            # The kubelet's socket belongs to root.
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    }
    # On the host's network, because its DCGM listens only on loopback.
    return {"hostNetwork": True, "dnsPolicy": "Default", "containers": [container], "volumes": volumes}
