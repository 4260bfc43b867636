"""Lists objects of a cluster's API as plain JSON, page by page: the client library's models cost a millisecond per pod."""

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
    """Yield all pods that have not ended."""
    return listed(api, "/api/v1/pods", fieldSelector=_RUNNING)


def daemon_sets(api: ApiClient) -> Iterator[dict[str, Any]]:
    return listed(api, "/apis/apps/v1/daemonsets")


def budgets(api: ApiClient) -> Iterator[dict[str, Any]]:
    return listed(api, "/apis/policy/v1/poddisruptionbudgets")


def pod_groups(api: ApiClient, version: str) -> Iterator[dict[str, Any]]:
    """Yield all PodGroups. version: of Kubernetes; it must have gangs."""
    return listed(api, f"/apis/{gangs.api(version)}/podgroups")


def listed(api: ApiClient, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """Yield all objects of a list.

    Errors: raises kubernetes' ApiException if the API refuses, and urllib3's HTTPError if it doesn't answer.
    """
    following = ""
    while True:
        parameters = [("limit", _PAGE), *query.items()] + ([("continue", following)] if following else [])
        answer = api.call_api(
            path,
            "GET",
            query_params=parameters,
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
