"""Deals with every object of a list, then with those that change. Of one that can't be dealt with, the others take no harm."""

from __future__ import annotations

import http.client
from typing import Any, Callable

from .api import WATCH_S, Api, ApiError

RETRY_S = 15
_UNAUTHORIZED = 401
_LONGEST = 500


class NotYet(Exception):
    """What decides about an object is not there yet. Who raises it has told why."""


class Follower:
    """decide: acts on one object. listed: is given the UIDs of all that are there. told: is given what was wrong with one, once.

    order: by which all that are there have their turns. again_s: until an object that failed, or for which it was too early, has
    its next.

    Whoever may write an object has words in it, so anything may be wrong with it. Not its fault are an API that does not
    answer, and one that does not know this program: these end the round.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        decide: Callable[[dict[str, Any]], None],
        listed: Callable[[set[str]], None] = lambda uids: None,
        told: Callable[[dict[str, Any], str], None] = lambda thing, reason: None,
        order: Callable[[dict[str, Any]], bool] = lambda thing: True,
        again_s: int = RETRY_S,
    ) -> None:
        self._api, self._path, self._decide, self._listed, self._tell = api, path, decide, listed, told
        self._order, self._again_s = order, again_s
        self._said: dict[str, str] = {}

    def follow(self, query: str = "") -> None:
        """Everything that is there, then what changes, until the server ends the watch, or one has to be looked at again.

        query: of the list alone.
        """
        version, well = self.look(query)
        for thing in self._api.watch(self._path, version, WATCH_S if well else self._again_s):
            if not self.deal(thing) and well:
                return

    def look(self, query: str = "") -> tuple[str, bool]:
        """Everything that is there: the version of the list, and whether all could be dealt with."""
        found = self._api.call("GET", self._path + query)
        uids = {thing["metadata"]["uid"] for thing in found["items"]}
        self._said = {uid: reason for uid, reason in self._said.items() if uid in uids}
        self._listed(uids)
        done = [self.deal(thing) for thing in sorted(found["items"], key=self._order)]
        return found["metadata"]["resourceVersion"], all(done)

    def deal(self, thing: dict[str, Any]) -> bool:
        """Whether it could be dealt with. The same reason is told once."""
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
        self._tell(thing, reason)


def words(error: Exception) -> str:
    """An error on one line of printable letters: it may quote what somebody wrote."""
    text = str(error) if isinstance(error, (ApiError, ValueError)) else repr(error)
    return plain(text)


def plain(text: str) -> str:
    """Printable letters on one line, no more than a journal or an Event takes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)[:_LONGEST]
