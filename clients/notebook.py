"""What verbs remember of a cluster, in ConfigMaps of kube-system: whoever looks from any machine sees the same.

It is in etcd, so it is in its backups, and it ends with the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from kubernetes import client

from clients import config_maps
from clients.conflicts import until_settled

NAMESPACE = "kube-system"

_T = TypeVar("_T")
Pages = dict[str, Any]
"""Key -> what stands there, as JSON."""


def read(api: client.ApiClient, name: str) -> Pages:
    """All pages; none where nobody wrote one. NewerDataError."""
    return _pages(config_maps.read(api, NAMESPACE, name))


def change(api: client.ApiClient, name: str, edit: Callable[[Pages], _T]) -> _T:
    """Edit the pages as they are now, and once more where somebody else was quicker. What `edit` raises leaves them alone.

    Pages and fields that `edit` leaves where they are stay, whoever wrote them. NewerDataError.
    """

    def attempt() -> _T:
        found = config_maps.read(api, NAMESPACE, name)
        pages = _pages(found)
        result = edit(pages)
        data = {key: json.dumps(value, sort_keys=True) for key, value in pages.items()}
        config_maps.write(api, NAMESPACE, name, data, found)
        return result

    return until_settled(attempt)


def _pages(found: client.V1ConfigMap | None) -> Pages:
    return {key: json.loads(text) for key, text in ((found and found.data) or {}).items()}
