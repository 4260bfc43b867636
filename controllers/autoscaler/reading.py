"""Lists of a cluster's API as plain JSON, by pages: the client library's models take a millisecond a pod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.scheduling import gangs

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

TIMEOUT_S = 30
_PAGE = 1000
_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


def pods(api: ApiClient) -> Iterator[dict[str, Any]]:
    """All that have not ended."""
    return listed(api, "/api/v1/pods", fieldSelector=_RUNNING)


def daemon_sets(api: ApiClient) -> Iterator[dict[str, Any]]:
    return listed(api, "/apis/apps/v1/daemonsets")


def budgets(api: ApiClient) -> Iterator[dict[str, Any]]:
    return listed(api, "/apis/policy/v1/poddisruptionbudgets")


def pod_groups(api: ApiClient, version: str) -> Iterator[dict[str, Any]]:
    """version: of Kubernetes, one that has gangs."""
    return listed(api, f"/apis/{gangs.api(version)}/podgroups")


def listed(api: ApiClient, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """Raises kubernetes' ApiException where the API refuses, and urllib3's HTTPError where it doesn't answer."""
    following = ""
    while True:
        asked = [("limit", _PAGE), *query.items()] + ([("continue", following)] if following else [])
        answer = api.call_api(
            path,
            "GET",
            query_params=asked,
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
            _preload_content=False,
            _return_http_data_only=True,
            _request_timeout=TIMEOUT_S,
        )
        page = json.loads(answer.data)
        yield from page.get("items") or ()
        following = page["metadata"].get("continue", "")
        if not following:
            return
