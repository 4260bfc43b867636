"""Lists of a kind with their version, and what changed since: a watch that ends after seconds, read as a whole.

A watch from a version says everything that happened since, unless the API server no longer knows: it answers 410 Gone, or
sends an ERROR with that code (kubernetes.io, "Efficient detection of changes"). Then only a new list helps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from clients.api_errors import ApiStatusError
from clients.objects import PLACES
from clients.paging import PAGE
from clients.rest import PATIENT_S, Rest, with_query

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

WATCH_S = 3
"""Length of a watch. API servers send a bookmark two seconds before its end (apiserver, storage/cacher)."""
_MANY = 500
"""After so many events there may be more, so that another watch follows at once."""


class ExpiredError(Exception):
    """The API server no longer knows what happened since a version."""


class Change(NamedTuple):
    """A change of an object. gone: whether it was deleted; the object is then its last state."""

    gone: bool
    thing: dict[str, Any]


class Watching:
    """Reads one kind of objects. Raises ApiStatusError and ApiSilentError of `clients.api_errors`.

    version: up to which everything is known. at: when the API server answered last, by its clock; None before.
    """

    def __init__(self, api: ApiClient, kind: str, version: str = "") -> None:
        self._rest, self._path = Rest(api, PATIENT_S), PLACES[kind].path()
        self.version = version
        self.at: datetime | None = None

    def everything(self) -> Iterator[dict[str, Any]]:
        """Yield all objects, page by page. Afterwards `version` is that of the list.

        If the API server forgets the list before its last page (410), that is an ApiStatusError: the caller lists again.
        """
        following, version = "", ""
        while True:
            page = self._get({"limit": PAGE, "continue": following})
            version = page["metadata"]["resourceVersion"]
            yield from page.get("items") or ()
            following = page["metadata"].get("continue", "")
            if not following:
                self.version = version
                return

    def changes(self) -> Iterator[Change]:
        """Yield what changed since `version`, in order, and go on from there. Raises ExpiredError."""
        while True:
            count = 0
            for event in self._events():
                count += event["type"] != "BOOKMARK"
                if event["type"] == "ERROR":
                    _refuse(event["object"])
                self.version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    yield Change(event["type"] == "DELETED", event["object"])
            if count < _MANY:
                return

    def _events(self) -> Iterator[dict[str, Any]]:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
            "timeoutSeconds": WATCH_S,
        }
        answer = self._rest.send(HTTPMethod.GET, with_query(self._path, query))
        if answer.status == HTTPStatus.GONE:
            raise ExpiredError
        self._check(answer)
        for line in answer.data.splitlines():
            if line.strip():
                yield json.loads(line)

    def _get(self, query: dict[str, Any]) -> dict[str, Any]:
        answer = self._rest.send(HTTPMethod.GET, with_query(self._path, query))
        self._check(answer)
        page: dict[str, Any] = json.loads(answer.data)
        return page

    def _check(self, answer: Any) -> None:
        if answer.status != HTTPStatus.OK:
            raise ApiStatusError(answer.status, answer.reason or "", answer.data.decode(errors="replace"))
        if date := answer.headers.get("Date"):
            self.at = parsedate_to_datetime(date)


def _refuse(status: dict[str, Any]) -> None:
    if status.get("code") == HTTPStatus.GONE or status.get("reason") == "Expired":
        raise ExpiredError
    raise ApiStatusError(int(status.get("code") or 500), str(status.get("reason")), json.dumps(status))
