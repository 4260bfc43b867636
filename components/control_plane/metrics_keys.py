"""The program that gives metrics-server and the scraper their keys: its unit, what it follows, and what it may do in the API. Pure.

`kubernetes-ca` signs both certificates in the stack, like those of operators. Neither needs an authority of its own: only API servers
call metrics-server, by a name that no other server has, and each certificate is for servers or for clients alone.
"""

from __future__ import annotations

from dataclasses import replace

from cluster.files import Consumer, SecretRef
from components.control_plane import paths
from components.control_plane.host import metrics_keys, scraping
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, role, role_binding, user
from components.control_plane.service_unit import Unit, follower, kubeconfig

NAME = "metrics-keys"
"""Name of the unit, its account and its kubeconfig."""
USER = "menagerie:metrics-keys"
CERTIFICATE, KEY = metrics_keys.CERTIFICATE, metrics_keys.KEY
_VERBS = ("create", "get", "patch")
_PAIRS = {CERTIFICATE: KEY, scraping.CERTIFICATE: scraping.KEY}
"""Certificate -> key: names in the cluster's secret store, too."""
_FILES = {
    **{name: f"{paths.PKI}/{name}" for pair in _PAIRS.items() for name in pair},
    metrics_keys.CA: f"{paths.PKI}/ca.crt",
    metrics_keys.KUBELETS: paths.SERVING_CA,
}


def secrets() -> tuple[SecretRef, ...]:
    """Return what only this program uses of the store: certificates, and their keys."""
    certificates = (SecretRef(name, _FILES[name], 0o644) for name in _PAIRS)
    return (*certificates, *(SecretRef(name, _FILES[name], 0o600) for name in _PAIRS.values()))


def unit() -> Unit:
    """Return its unit."""
    usual = follower(
        NAME,
        "metrics_keys",
        NAME,
        "Gives metrics-server and the scraper their certificates, and the authorities of kubelets",
        "tasks/extend-kubernetes/setup-extension-api-server/",
    )
    return replace(usual, credentials=(*usual.credentials, *_FILES.items()))


def consumer() -> Consumer:
    """Return what it follows. It reads its files at its start."""
    return Consumer(f"{NAME}.service", (kubeconfig(NAME), *_FILES.values()))


def objects() -> tuple[Object, ...]:
    """Return its rights: five objects, by name, and the slices of one namespace. `create` by name allows server-side apply and no
    POST."""
    of_cluster = [
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": [metrics_keys.API_SERVICE],
            "verbs": ["get", "patch"],
        }
    ]
    leases: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}
    slices: Object = {
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": [*_VERBS, "delete", "list"],
    }
    by_namespace = {
        metrics_keys.NAMESPACE: [*_named(metrics_keys.SECRET, metrics_keys.AUTHORITIES), leases],
        scraping.NAMESPACE: [*_named(scraping.SECRET, scraping.AUTHORITIES), slices],
    }
    return (
        cluster_role(USER, of_cluster),
        cluster_role_binding(USER, USER, user(USER)),
        *(
            thing
            for namespace, rules in by_namespace.items()
            for thing in (role(USER, rules, namespace), role_binding(USER, USER, user(USER), namespace))
        ),
    )


def _named(secret: str, config_map: str) -> tuple[Object, ...]:
    """Return the rules for one Secret and one ConfigMap of a namespace."""
    named = {"secrets": secret, "configmaps": config_map}
    return tuple(
        {"apiGroups": [""], "resources": [kind], "resourceNames": [name], "verbs": list(_VERBS)}
        for kind, name in named.items()
    )
