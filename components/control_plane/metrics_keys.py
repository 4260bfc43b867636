"""The program that gives metrics-server its keys: its unit, what it follows, and what it may do in the API. Pure.

`kubernetes-ca` signs metrics-server's certificate in the stack, like those of operators. It needs no authority of its own: only API
servers call metrics-server, by a name that no other server has, and the certificate is for servers alone.
"""

from __future__ import annotations

from dataclasses import replace

from cluster.files import Consumer, SecretRef
from components.control_plane import paths
from components.control_plane.host import metrics_keys
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, role, role_binding, user
from components.control_plane.service_unit import Unit, follower, kubeconfig

NAME = "metrics-keys"
"""Name of the unit, its account and its kubeconfig."""
USER = "menagerie:metrics-keys"
CERTIFICATE, KEY = metrics_keys.CERTIFICATE, metrics_keys.KEY
"""Names in the cluster's secret store, too."""
_FILES = {
    CERTIFICATE: f"{paths.PKI}/{CERTIFICATE}",
    KEY: f"{paths.PKI}/{KEY}",
    metrics_keys.CA: f"{paths.PKI}/ca.crt",
    metrics_keys.KUBELETS: paths.SERVING_CA,
}


def secrets() -> tuple[SecretRef, ...]:
    """Return what only this program uses of the store: the certificate, and its key."""
    return SecretRef(CERTIFICATE, _FILES[CERTIFICATE], 0o644), SecretRef(KEY, _FILES[KEY], 0o600)


def unit() -> Unit:
    """Return its unit."""
    usual = follower(
        NAME,
        "metrics_keys",
        NAME,
        "Gives metrics-server its certificate, and the authorities of kubelets",
        "tasks/extend-kubernetes/setup-extension-api-server/",
    )
    return replace(usual, credentials=(*usual.credentials, *_FILES.items()))


def consumer() -> Consumer:
    """Return what it follows. It reads its files at its start."""
    return Consumer(f"{NAME}.service", (kubeconfig(NAME), *_FILES.values()))


def objects() -> tuple[Object, ...]:
    """Return its rights: three objects, by name. `create` by name allows server-side apply and no POST."""
    verbs = ["create", "get", "patch"]
    of_cluster = [
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": [metrics_keys.API_SERVICE],
            "verbs": ["get", "patch"],
        }
    ]
    own = [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [metrics_keys.SECRET], "verbs": verbs},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [metrics_keys.AUTHORITIES], "verbs": verbs},
    ]
    return (
        cluster_role(USER, of_cluster),
        cluster_role_binding(USER, USER, user(USER)),
        role(USER, own, metrics_keys.NAMESPACE),
        role_binding(USER, USER, user(USER), metrics_keys.NAMESPACE),
    )
