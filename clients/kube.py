"""Requests to a cluster's API in plain JSON: paged lists, server-side apply, merge patches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

TIMEOUT_S = 30
_PAGE = 500

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace ("" for cluster-scoped objects), name."""


def key_of(thing: Object) -> Key:
    """Return an object's key."""
    metadata = thing["metadata"]
    return thing["kind"], metadata.get("namespace", ""), metadata["name"]


def named(key: Key) -> str:
    """Return the key for people: ``Deployment menagerie-system/tenancy-sync``."""
    kind, inside, name = key
    return f"{kind} {inside}/{name}" if inside else f"{kind} {name}"


def as_json(key: Key) -> dict[str, str]:
    """Return the key as `--json` prints it."""
    return dict(zip(("kind", "namespace", "name"), key, strict=True))


class Place(NamedTuple):
    """The API path of a kind."""

    group: str
    plural: str

    def path(self, inside: str = "", name: str = "") -> str:
        """Return the path. inside: the namespace, "" for none or all. name: "" for the list."""
        base = f"/api/{self.group}" if "/" not in self.group else f"/apis/{self.group}"
        return "/".join([base, *(["namespaces", inside] if inside else []), self.plural, *([name] if name else [])])


Query = list[tuple[str, Any]]


class Kube:
    """Reads and writes objects. Raises kubernetes' ApiException if the API refuses, urllib3's HTTPError if it
    doesn't respond."""

    def __init__(self, api: ApiClient, manager: str, places: Mapping[str, Place]) -> None:
        """manager: the field manager for writes. places: the API paths of all kinds in use."""
        self._api, self._manager, self._places = api, manager, places

    def serves(self, place: Place) -> bool:
        """Return whether the API server has the resource in that version."""
        from kubernetes.client.exceptions import ApiException  # 40 MB of models

        try:
            group = self._ask("GET", f"/apis/{place.group}", [])
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return any(resource["name"] == place.plural for resource in group["resources"])

    def read(self, kind: str, name: str, inside: str = "") -> dict[str, Any]:
        """Return one object. inside: its namespace, "" for none."""
        thing: dict[str, Any] = self._ask("GET", self._places[kind].path(inside, name), [])
        return thing

    def list(self, kind: str, inside: str = "", *, name: str = "") -> Iterator[dict[str, Any]]:
        """Yield all objects of a kind, in one namespace or in all. name: only those with this name.

        Items of an API list lack kind and apiVersion; here they have both.
        """
        place, following = self._places[kind], ""
        while True:
            query = [("limit", _PAGE)] + ([("fieldSelector", f"metadata.name={name}")] if name else [])
            query += [("continue", following)] if following else []
            page = self._ask("GET", place.path(inside), query)
            for item in page.get("items") or ():
                yield {**item, "apiVersion": place.group, "kind": kind}
            following = page.get("metadata", {}).get("continue", "")
            if not following:
                return

    def apply(self, thing: Object, *, dry_run: bool = False) -> dict[str, Any]:
        """Apply server-side: fields of other managers stay, ours are overwritten. Return the resulting object."""
        kind, inside, name = key_of(thing)
        query: Query = [("fieldManager", self._manager), ("force", "true"), ("fieldValidation", "Strict")]
        query += [("dryRun", "All")] if dry_run else []
        path = self._places[kind].path(inside, name)
        applied: dict[str, Any] = self._ask("PATCH", path, query, thing, "application/apply-patch+yaml")
        return applied

    def patch(self, key: Key, patch: Object) -> None:
        """Apply a merge patch (RFC 7396)."""
        kind, inside, name = key
        query = [("fieldManager", self._manager)]
        self._ask("PATCH", self._places[kind].path(inside, name), query, patch, "application/merge-patch+json")

    def delete(self, key: Key) -> None:
        """Delete one object and what Kubernetes deletes with it."""
        kind, inside, name = key
        self._ask("DELETE", self._places[kind].path(inside, name), [])

    def _ask(self, method: str, path: str, query: Query, body: object = None, kind: str = "") -> Any:
        headers = {"Accept": "application/json", **({"Content-Type": kind} if kind else {})}
        answer = self._api.call_api(
            path,
            method,
            query_params=query,
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _return_http_data_only=True,
            _request_timeout=TIMEOUT_S,
        )
        return json.loads(answer.data or b"null")
