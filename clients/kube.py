"""Requests to a cluster's API, as plain JSON: lists by pages, server-side apply, merge patches."""

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
"""Kind, namespace ("" of none), name."""


def key_of(thing: Object) -> Key:
    """Which one an object is."""
    metadata = thing["metadata"]
    return thing["kind"], metadata.get("namespace", ""), metadata["name"]


def named(key: Key) -> str:
    """For people: ``Deployment menagerie-system/tenancy-sync``."""
    kind, inside, name = key
    return f"{kind} {inside}/{name}" if inside else f"{kind} {name}"


def as_json(key: Key) -> dict[str, str]:
    """As `--json` gives it."""
    return dict(zip(("kind", "namespace", "name"), key, strict=True))


class Place(NamedTuple):
    """Where objects of a kind are."""

    group: str
    plural: str

    def path(self, inside: str = "", name: str = "") -> str:
        """inside: the namespace, "" of none or of all; name: "" of the list."""
        base = f"/api/{self.group}" if "/" not in self.group else f"/apis/{self.group}"
        return "/".join([base, *(["namespaces", inside] if inside else []), self.plural, *([name] if name else [])])


Query = list[tuple[str, Any]]


class Kube:
    """Raises kubernetes' ApiException where the API refuses, and urllib3's HTTPError where it doesn't answer."""

    def __init__(self, api: ApiClient, manager: str, places: Mapping[str, Place]) -> None:
        """manager: the field manager of what is written. places: of each kind that is asked for."""
        self._api, self._manager, self._places = api, manager, places

    def serves(self, place: Place) -> bool:
        """Whether the API server has the resource in that version."""
        from kubernetes.client.exceptions import ApiException  # 40 MB of models

        try:
            found = self._ask("GET", f"/apis/{place.group}", [])
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return any(each["name"] == place.plural for each in found["resources"])

    def read(self, kind: str, name: str, inside: str = "") -> dict[str, Any]:
        """One object. inside: its namespace, "" of none."""
        found: dict[str, Any] = self._ask("GET", self._places[kind].path(inside, name), [])
        return found

    def list(self, kind: str, inside: str = "", *, name: str = "") -> Iterator[dict[str, Any]]:
        """All of a kind, of a namespace or of all; name: only those. Lists leave kind and version out; here they have both."""
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
        """Server-side apply: others' fields stay, ours are taken back from whoever changed them. The object as it is then."""
        kind, inside, name = key_of(thing)
        query: Query = [("fieldManager", self._manager), ("force", "true"), ("fieldValidation", "Strict")]
        query += [("dryRun", "All")] if dry_run else []
        path = self._places[kind].path(inside, name)
        made: dict[str, Any] = self._ask("PATCH", path, query, thing, "application/apply-patch+yaml")
        return made

    def patch(self, key: Key, patch: Object) -> None:
        """Merge patch (RFC 7396)."""
        kind, inside, name = key
        query = [("fieldManager", self._manager)]
        self._ask("PATCH", self._places[kind].path(inside, name), query, patch, "application/merge-patch+json")

    def delete(self, key: Key) -> None:
        """One object, and what Kubernetes deletes with it."""
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
