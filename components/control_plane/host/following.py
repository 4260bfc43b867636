"""Handles all objects of a list, then those that change. A failure of one does not affect the others."""

from __future__ import annotations

import http.client
from typing import Any, Callable

from .api import WATCH_S, Api, ApiError

RETRY_S = 15
_UNAUTHORIZED = 401
_LONGEST = 500


class NotYet(Exception):
    """It is too early to decide about an object. The raiser has reported why."""


class Follower:
    """decide: acts on one object. listed: gets the UIDs of all objects. failed: gets an object and its failure, once.

    order: sort key of the list. again_s: seconds until an object that failed or raised NotYet is retried.

    People write parts of objects, so anything may be wrong with one. If the API does not answer or rejects this
    program's credential, that is not the object's fault: the round ends.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        decide: Callable[[dict[str, Any]], None],
        listed: Callable[[set[str]], None] = lambda uids: None,
        failed: Callable[[dict[str, Any], str], None] = lambda thing, reason: None,
        order: Callable[[dict[str, Any]], bool] = lambda thing: True,
        again_s: int = RETRY_S,
    ) -> None:
        self._api, self._path, self._decide, self._listed, self._failed = api, path, decide, listed, failed
        self._order, self._again_s = order, again_s
        self._said: dict[str, str] = {}

    def follow(self, query: str = "") -> None:
        """Handle all objects, then changes, until the server ends the watch or an object must be retried.

        query: of the list only.
        """
        version, well = self.look(query)
        for thing in self._api.watch(self._path, version, WATCH_S if well else self._again_s):
            if not self.deal(thing) and well:
                return

    def look(self, query: str = "") -> tuple[str, bool]:
        """Handle all objects. Return the list's version, and whether all succeeded."""
        listing = self._api.call("GET", self._path + query)
        uids = {thing["metadata"]["uid"] for thing in listing["items"]}
        self._said = {uid: reason for uid, reason in self._said.items() if uid in uids}
        self._listed(uids)
        done = [self.deal(thing) for thing in sorted(listing["items"], key=self._order)]
        return listing["metadata"]["resourceVersion"], all(done)

    def deal(self, thing: dict[str, Any]) -> bool:
        """Handle one object. Return whether it succeeded. Report the same reason once."""
        try:
            self._decide(thing)
        except (OSError, http.client.HTTPException):
            raise
        except NotYet:
            return False
        except Exception as error:
            if isinstance(error, ApiError) and error.status == _UNAUTHORIZED:
                raise
            self._report(thing, words(error))
            return False
        self._said.pop(thing["metadata"]["uid"], None)
        return True

    def _report(self, thing: dict[str, Any], reason: str) -> None:
        about = thing["metadata"]
        if self._said.get(about["uid"]) == reason:
            return
        self._said[about["uid"]] = reason
        print(f"{'/'.join(filter(None, (about.get('namespace'), about['name'])))}: {reason}", flush=True)
        self._failed(thing, reason)


def words(error: Exception) -> str:
    """Return an error as one printable line: it may quote what somebody wrote."""
    text = str(error) if isinstance(error, (ApiError, ValueError)) else repr(error)
    return plain(text)


def plain(text: str) -> str:
    """Return the text as one printable line, short enough for a journal or an Event."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)[:_LONGEST]
