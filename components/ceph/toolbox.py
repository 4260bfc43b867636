"""A pod for Ceph commands. It holds the key of Ceph's administrator, so it does not run until somebody scales it up."""

from __future__ import annotations

from cluster.images import CEPH, by_digest
from cluster.spec import Cluster
from components.ceph.names import NAMESPACE, needs, placement
from components.control_plane.objects import Object

TOOLBOX = "ceph-toolbox"
_CEPH_USER = 2016
"""The user that Rook's own toolbox runs as ("toolbox.yaml")."""
# Rook stores monitors as a=10.10.0.11:3300,b=... Monitors can move; a client that reaches one learns of the others.
_START = """\
set -eu
umask 077
printf '[global]\\nmon_host = %s\\n' "$(sed -E 's/[a-z0-9-]+=//g' /etc/rook/monitors)" > /etc/ceph/ceph.conf
printf '[%s]\\nkey = %s\\n' "$(cat /etc/rook-admin/user)" "$(cat /etc/rook-admin/key)" > /etc/ceph/keyring
trap 'exit 0' TERM
sleep infinity & wait
"""


def toolbox(cluster: Cluster) -> Object:
    """Return a Deployment with 0 replicas."""
    labels = {"app": TOOLBOX}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": TOOLBOX, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(cluster)},
        },
    }


def _pod(cluster: Cluster) -> Object:
    where = placement(cluster)
    tolerations = where.pop("tolerations", [])
    secret = [{"key": "ceph-username", "path": "user"}, {"key": "ceph-secret", "path": "key"}]
    return {
        "automountServiceAccountToken": False,
        "affinity": where,
        "tolerations": tolerations,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _CEPH_USER,
            "runAsGroup": _CEPH_USER,
            "fsGroup": _CEPH_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "ceph",
                "image": by_digest(cluster.spec, CEPH),
                "command": ["/bin/bash", "-c", _START],
                "resources": needs("100m", "128Mi", "1Gi"),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/ceph"},
                    {"name": "scratch", "mountPath": "/tmp"},
                    {"name": "monitors", "mountPath": "/etc/rook", "readOnly": True},
                    {"name": "admin", "mountPath": "/etc/rook-admin", "readOnly": True},
                ],
            }
        ],
        "volumes": [
            {"name": "config", "emptyDir": {"medium": "Memory"}},
            {"name": "scratch", "emptyDir": {}},
            {
                "name": "monitors",
                "configMap": {"name": "rook-ceph-mon-endpoints", "items": [{"key": "data", "path": "monitors"}]},
            },
            {"name": "admin", "secret": {"secretName": "rook-ceph-mon", "items": secret}},
        ],
    }
