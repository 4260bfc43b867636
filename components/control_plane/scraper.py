"""The scraper, a pod that collects metrics: its namespace, its user, and where it finds API servers. Pure.

It has a client certificate, not an account: relays on hosts (`cluster.metrics.relay`) know no accounts, and a kubelet that is asked
with a token could use that token elsewhere.
"""

from __future__ import annotations

from components.control_plane.host.scraping import NAMESPACE, SERVICE
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user

USER = "menagerie:metrics"
"""Common name of its certificate, by which kubelets and API servers know it."""
API_SERVERS = f"{SERVICE}.{NAMESPACE}.svc"
"""The name by which it verifies relays of API servers; with the cluster's domain, it resolves to their addresses."""


def objects() -> tuple[Object, ...]:
    """Return the namespace, the Service without pods, and the scraper's rights: to read metrics, and nothing else."""
    rules: list[Object] = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            # Without a selector: API servers write its EndpointSlices.
            "spec": {"clusterIP": "None"},
        },
        cluster_role(USER, rules),
        cluster_role_binding(USER, USER, user(USER)),
    )
