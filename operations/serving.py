"""Publishes the addresses of the spec's machines to the cluster before any of them joins.

The approver of kubelets' serving certificates uses them (`components.control_plane.host.claims`). They are in the API and
not in the API servers' boot data, because then every added machine would replace all API servers.
"""

from __future__ import annotations

import json
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.config_maps import publish
from clients.conflicts import until_settled
from cluster.spec import Cluster
from components.control_plane.host.claims import HOSTS, KEY
from components.control_plane.serving import NAMESPACE


def publish_addresses(cluster: Cluster, api: client.ApiClient) -> None:
    """Publish the addresses of all machines at sites, if they changed. Raises what `publish` raises."""
    data = {KEY: json.dumps({host.name: str(host.address) for _, host in cluster.host_list()}, sort_keys=True)}

    def attempt() -> None:
        try:
            publish(api, NAMESPACE, HOSTS, data)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            # API servers of an older release have not created the namespace.
            client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}}, _request_timeout=API_TIMEOUT_S)
            publish(api, NAMESPACE, HOSTS, data)

    until_settled(attempt)
