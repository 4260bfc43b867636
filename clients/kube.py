"""Objects of a cluster's API by kind, in plain JSON: paged lists, server-side apply, merge patches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Any

from clients.access import API_TIMEOUT_S
from clients.api_errors import ApiStatusError
from clients.objects import PLACES, Key, Object, Place, key_of
from clients.rest import Listing, Rest, with_query

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


class Kube:
    """Reads and writes objects. Raises ApiStatusError and ApiSilentError of `clients.api_errors`."""

    def __init__(
        self,
        api: ApiClient,
        manager: str = "",
        more: Mapping[str, Place] | None = None,
        *,
        timeout_s: float = API_TIMEOUT_S,
    ) -> None:
        """manager: the field manager for writes; not needed to read and delete. more: the API paths of kinds that `PLACES` lacks."""
        self._rest, self._manager = Rest(api, timeout_s), manager
        self._places = {**PLACES, **(more or {})}

    def serves(self, place: Place) -> bool:
        """Return whether the API server has the resource in that version."""
        try:
            group = self._rest.get(f"/apis/{place.group}")
        except ApiStatusError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return any(resource["name"] == place.plural for resource in group["resources"])

    def read(self, kind: str, name: str, inside: str = "") -> dict[str, Any]:
        """Return one object. inside: its namespace, "" for none."""
        thing: dict[str, Any] = self._rest.get(self._places[kind].path(inside, name))
        return thing

    def list(self, kind: str, inside: str = "", *, labels: str = "", fields: str = "") -> Iterator[dict[str, Any]]:
        """Yield all objects of a kind, in one namespace or in all, page by page. labels, fields: selectors.

        Items of an API list lack kind and apiVersion; here they have both.
        """
        group = self._places[kind].group
        for item in self._rest.list(self._listed(kind, inside, labels, fields)):
            yield {**item, "apiVersion": group, "kind": kind}

    def snapshot(self, kind: str, inside: str = "", *, labels: str = "") -> Listing:
        """Return all objects of a kind, with the API server's time."""
        return self._rest.snapshot(self._listed(kind, inside, labels, ""))

    def apply(self, thing: Object, *, dry_run: bool = False) -> dict[str, Any]:
        """Apply server-side: fields of other managers stay, ours are overwritten. Return the resulting object."""
        kind, inside, name = key_of(thing)
        query = {"fieldManager": self._manager, "force": "true", "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        path = with_query(self._places[kind].path(inside, name), query)
        applied: dict[str, Any] = self._rest.write(HTTPMethod.PATCH, path, thing, "application/apply-patch+yaml")
        return applied

    def patch(self, key: Key, patch: Object) -> None:
        """Apply a merge patch (RFC 7396)."""
        kind, inside, name = key
        path = with_query(self._places[kind].path(inside, name), {"fieldManager": self._manager})
        self._rest.write(HTTPMethod.PATCH, path, patch, "application/merge-patch+json")

    def delete(self, key: Key) -> None:
        """Delete one object and what Kubernetes deletes with it."""
        kind, inside, name = key
        self._rest.write(HTTPMethod.DELETE, self._places[kind].path(inside, name))

    def _listed(self, kind: str, inside: str, labels: str, fields: str) -> str:
        return with_query(self._places[kind].path(inside), {"labelSelector": labels, "fieldSelector": fields})
