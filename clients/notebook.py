"""Notes that verbs keep about a cluster, in ConfigMaps of kube-system: they are the same from any machine.

They are in etcd, so they are in its backups, and they are deleted with the cluster.
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
"""Key -> its JSON value."""


def read(api: client.ApiClient, name: str) -> Pages:
    """Return all pages, {} if nobody has written one. Raises NewerDataError."""
    return _pages(config_maps.read(api, NAMESPACE, name))


def change(api: client.ApiClient, name: str, edit: Callable[[Pages], _T]) -> _T:
    """Read the pages, call `edit` on them and write them; retry on a conflict. If `edit` raises, nothing is written.

    Pages and fields that `edit` does not touch stay. Raises NewerDataError.
    """

    def attempt() -> _T:
        config_map = config_maps.read(api, NAMESPACE, name)
        pages = _pages(config_map)
        result = edit(pages)
        data = {key: json.dumps(value, sort_keys=True) for key, value in pages.items()}
        config_maps.write(api, NAMESPACE, name, data, config_map)
        return result

    return until_settled(attempt)


def _pages(config_map: client.V1ConfigMap | None) -> Pages:
    return {key: json.loads(text) for key, text in ((config_map and config_map.data) or {}).items()}
