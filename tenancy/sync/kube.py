"""Requests to a cluster's API, as plain JSON: lists by pages, server-side apply, merge patches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from kubernetes.client.exceptions import ApiException

from tenancy.sync.objects import MANAGER, Object
from tenancy.sync.seen import Key, key_of

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

TIMEOUT_S = 30
_PAGE = 500


class Place(NamedTuple):
    """Where objects of a kind are."""

    group: str
    plural: str

    def path(self, inside: str = "", name: str = "") -> str:
        """inside: the namespace, "" of none or of all; name: "" of the list."""
        base = f"/api/{self.group}" if "/" not in self.group else f"/apis/{self.group}"
        return "/".join([base, *(["namespaces", inside] if inside else []), self.plural, *([name] if name else [])])


PLACES = {
    "Namespace": Place("v1", "namespaces"),
    "ResourceQuota": Place("v1", "resourcequotas"),
    "LimitRange": Place("v1", "limitranges"),
    "RoleBinding": Place("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRoleBinding": Place("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "ClusterRole": Place("rbac.authorization.k8s.io/v1", "clusterroles"),
    "Deployment": Place("apps/v1", "deployments"),
    "StatefulSet": Place("apps/v1", "statefulsets"),
    "ReplicaSet": Place("apps/v1", "replicasets"),
    "CronJob": Place("batch/v1", "cronjobs"),
    "Job": Place("batch/v1", "jobs"),
    "Node": Place("v1", "nodes"),
    "Pod": Place("v1", "pods"),
    "PriorityClass": Place("scheduling.k8s.io/v1", "priorityclasses"),
    "ValidatingAdmissionPolicy": Place("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": Place("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
}


Query = list[tuple[str, Any]]


class Kube:
    """Raises kubernetes' ApiException where the API refuses, and urllib3's HTTPError where it doesn't answer."""

    def __init__(self, api: ApiClient, more: Mapping[str, Place] | None = None) -> None:
        """more: places of kinds whose version is the API server's choice."""
        self._api, self._places = api, {**PLACES, **(more or {})}

    def serves(self, place: Place) -> bool:
        """Whether the API server has the resource in that version."""
        try:
            found = self._ask("GET", f"/apis/{place.group}", [])
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return any(each["name"] == place.plural for each in found["resources"])

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """One that is in no namespace."""
        found: dict[str, Any] = self._ask("GET", self._places[kind].path("", name), [])
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

    def apply(self, thing: Object) -> None:
        """Server-side apply: others' fields stay, ours are taken back from whoever changed them."""
        kind, inside, name = key_of(thing)
        query = [("fieldManager", MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        self._ask("PATCH", self._places[kind].path(inside, name), query, thing, "application/apply-patch+yaml")

    def patch(self, key: Key, patch: Object) -> None:
        """Merge patch (RFC 7396)."""
        kind, inside, name = key
        query = [("fieldManager", MANAGER)]
        self._ask("PATCH", self._places[kind].path(inside, name), query, patch, "application/merge-patch+json")

    def delete_binding(self, inside: str, name: str) -> None:
        """The only deletion there is: of a RoleBinding, whose role nothing else can change."""
        self._ask("DELETE", PLACES["RoleBinding"].path(inside, name), [])

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
