"""Requests to a cluster's API in plain JSON, over the connections of the Kubernetes library's client.

Of the library, this uses what its releases have in common: the configuration (server, TLS, credentials), the default
headers and urllib3's pool. `ApiClient.call_api` has other arguments and another result in 37 than in 36.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from clients.access import API_TIMEOUT_S
from clients.api_errors import ApiSilentError, ApiStatusError
from clients.paging import Page, each

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

PATIENT_S = 30
"""A time-out for controllers, for which nobody waits."""
JSON = "application/json"


class Listing(NamedTuple):
    """A list. at: when the API server read it, by its clock, in whole seconds."""

    at: datetime
    items: tuple[dict[str, Any], ...]


class Rest:
    """Sends requests by path. A path may have a query. Raises ApiStatusError and ApiSilentError.

    timeout_s: for each request.
    """

    def __init__(self, api: ApiClient, timeout_s: float = API_TIMEOUT_S) -> None:
        self._api, self._timeout_s = api, timeout_s

    def get(self, path: str, *, accept: str = JSON) -> Any:
        """Return what is at a path."""
        return json.loads(self._succeed(HTTPMethod.GET, path, accept=accept).data)

    def list(self, path: str, *, accept: str = JSON) -> Iterator[dict[str, Any]]:
        """Yield all objects of a list, page by page. They lack kind and apiVersion, as in every list of the API."""
        return each(lambda limit, following: self._page(path, limit, following, accept)[1], _identity)

    def snapshot(self, path: str) -> Listing:
        """Return all objects of a list, with the time of its first page."""
        dates: list[str] = []  # of first pages: there are two if the list was started again

        def fetch(limit: int | None, following: str) -> Page[dict[str, Any]]:
            date, page = self._page(path, limit, following, JSON)
            if not following:
                dates.append(date)
            return page

        items = tuple(each(fetch, _identity))
        return Listing(parsedate_to_datetime(dates[-1]), items)

    def write(self, method: HTTPMethod, path: str, body: object = None, content_type: str = JSON) -> Any:
        """Send a request that changes something. Return the answer, None if it is empty."""
        return json.loads(self._succeed(method, path, body, content_type).data or b"null")

    def send(
        self, method: HTTPMethod, path: str, body: object = None, content_type: str = JSON, accept: str = JSON
    ) -> urllib3.BaseHTTPResponse:
        """Send one request and return the answer, whatever its status. Raises ApiSilentError if there is none."""
        headers = {**self._api.default_headers, "Accept": accept, **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            answer: urllib3.BaseHTTPResponse = self._api.rest_client.pool_manager.request(
                method.value,
                f"{self._api.configuration.host}{path}",
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(total=self._timeout_s),
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiSilentError(error) from error
        return answer

    def _succeed(self, method: HTTPMethod, path: str, *body: Any, **options: str) -> urllib3.BaseHTTPResponse:
        answer = self.send(method, path, *body, **options)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise ApiStatusError(answer.status, answer.reason or "", answer.data.decode(errors="replace"))
        return answer

    def _page(self, path: str, limit: int | None, following: str, accept: str) -> tuple[str, Page[dict[str, Any]]]:
        """Return (the Date of the answer, the page)."""
        query = {"limit": limit, "continue": following}
        answer = self._succeed(HTTPMethod.GET, with_query(path, query), accept=accept)
        page = json.loads(answer.data)
        following = page.get("metadata", {}).get("continue", "")
        return answer.headers.get("Date", ""), Page(page.get("items") or (), following)

    def _credentials(self) -> dict[str, str]:
        """Return the header with the ServiceAccount's token, {} if a client certificate is used. Reads a renewed token."""
        token = self._api.configuration.auth_settings().get("BearerToken")
        return {token["key"]: token["value"]} if token and token["value"] else {}


def with_query(path: str, query: dict[str, Any]) -> str:
    """Return a path with these parameters added; those that are None or "" are left out."""
    text = urlencode({key: value for key, value in query.items() if value not in (None, "")})
    return f"{path}{'&' if '?' in path else '?'}{text}" if text else path


def _identity(thing: dict[str, Any]) -> tuple[str, str]:
    metadata = thing["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
