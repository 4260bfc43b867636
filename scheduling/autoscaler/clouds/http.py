"""Requests to a cloud's API: again where that changes nothing more, within a limit of time, and then an error for people."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import urllib3

from scheduling.autoscaler.groups import GroupError

LIMIT_S = 45.0
"""For one request with all of its repetitions."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_TIMEOUT = urllib3.Timeout(connect=5, read=20)
_LONGEST_TEXT = 400


@dataclass(frozen=True)
class Request:
    """One request. again: whether a second one does no more than the first, so that a lost answer is asked for again."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    again: bool = True


@dataclass(frozen=True)
class Answer:
    """status: of HTTP."""

    status: int
    body: bytes
    retry_after: str = ""

    @property
    def text(self) -> str:
        """On one line, as much of it as fits an error."""
        return " ".join(self.body.decode(errors="replace").split())[:_LONGEST_TEXT]


class LostError(GroupError):
    """Whether it was done is not known: no answer came, or the cloud's own failure."""


Judge = Callable[[Answer], bool]


class Http:
    """pause: waits for so many seconds. clock: seconds."""

    def __init__(
        self,
        pool: urllib3.PoolManager | None = None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool or urllib3.PoolManager(retries=False)
        self._pause = pause
        self._clock = clock

    def ask(self, make: Callable[[], Request], is_throttled: Judge) -> Answer:
        """The first answer that is neither throttled nor the server's own failure.

        make: the request, made anew for each try, since signatures age. is_throttled: of an answer that says so; nothing was
        done then, so any request goes again. LostError where `again` forbids another, or time is up.
        """
        begun, number = self._clock(), 0
        while True:
            request = make()
            answer, why = self._once(request)
            throttled = answer is not None and (answer.status == 429 or is_throttled(answer))
            if answer is not None and not throttled and answer.status < 500:
                return answer
            number += 1
            pause = _pause(number, answer)
            if not (throttled or request.again) or self._clock() - begun + pause > LIMIT_S:
                how = f", {number} times" if number > 1 else ""
                host = urllib3.util.parse_url(request.url).host
                said = (
                    f"{host} says to slow down"
                    if throttled
                    else f"no answer from {host} that tells whether it was done"
                )
                raise LostError(f"{said}{how}: {why}; what was asked is asked again with the next pass")
            self._pause(pause)

    def once(self, request: Request, timeout_s: float = 2.0) -> Answer | None:
        """The answer whatever it is, None where there is none in time; for a server that may not be there."""
        quick = urllib3.Timeout(connect=timeout_s, read=timeout_s)
        return self._once(request, quick)[0]

    def _once(self, request: Request, timeout: urllib3.Timeout = _TIMEOUT) -> tuple[Answer | None, str]:
        """The answer, and what is wrong with it or why there is none."""
        try:
            told: Any = self._pool.request(
                request.method,
                request.url,
                headers=dict(request.headers),
                body=request.body or None,
                redirect=False,
                timeout=timeout,
            )
        except urllib3.exceptions.HTTPError as error:
            return None, str(error)
        answer = Answer(told.status, told.data, told.headers.get("Retry-After", ""))
        return answer, f"HTTP {answer.status} {answer.text}"


def _pause(number: int, answer: Answer | None) -> float:
    """Doubled each time, half of it by chance: those that were told together do not come again together."""
    if answer is not None and answer.retry_after.isdigit():
        return float(answer.retry_after)
    longest: float = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (number - 1))
    return random.uniform(longest / 2, longest)
