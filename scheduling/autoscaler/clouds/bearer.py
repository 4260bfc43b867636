"""Requests to clouds whose APIs take a bearer's token and speak JSON: Azure and Google Cloud."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.autoscaler.clouds.http import Http, Request
from scheduling.autoscaler.clouds.identity import EARLY_S, never_throttled
from scheduling.autoscaler.groups import GroupError

_UNAUTHORIZED, _FORBIDDEN = 401, 403


@dataclass(frozen=True)
class Token:
    """expires: when it ends. project: whose things it is for, as far as it says: a subscription, a project."""

    text: str = field(repr=False)
    expires: datetime
    project: str = ""

    @classmethod
    def lasting(cls, text: str, seconds: float, project: str = "") -> Token:
        return cls(text, datetime.now(UTC) + timedelta(seconds=seconds), project)


class Bearers(ABC):
    """Tokens, kept until shortly before they end."""

    def __init__(self) -> None:
        self._kept: Token | None = None

    def token(self) -> Token:
        """GroupError where there is none, with the ways to one."""
        if self._kept is None or self._kept.expires - datetime.now(UTC) < timedelta(seconds=EARLY_S):
            self._kept = self._new()
        return self._kept

    def forget(self) -> None:
        """It was refused."""
        self._kept = None

    @abstractmethod
    def _new(self) -> Token: ...


class RefusedError(GroupError):
    """status: of HTTP. code: the cloud's word for why."""

    def __init__(self, status: int, code: str, text: str) -> None:
        self.status = status
        self.code = code
        super().__init__(text)


@dataclass(frozen=True)
class Api:
    """cloud: its name for people. url: without a slash at its end. rights: where they stand in our documentation."""

    http: Http
    bearers: Bearers
    cloud: str
    url: str
    rights: str

    def ask(self, method: str, path: str, body: object = None, *, again: bool = True) -> Any:
        """The JSON of the answer, None where it has no body. path: begins with a slash; with its query.

        again: see `Request`. RefusedError, LostError.
        """
        answer = self._once(method, path, body, again)
        if answer[0] == _UNAUTHORIZED:
            self.bearers.forget()
            answer = self._once(method, path, body, again)
        status, text, data = answer
        told = _read(data)
        if status < 300:
            if data.strip() and told is None:
                raise GroupError(f"{self.cloud} answered {method} {path} with what is no JSON: {text}")
            return told
        code, message = _error(told)
        advice = f"; the rights are in {self.rights}" if status == _FORBIDDEN else ""
        at = path.partition("?")[0]
        raise RefusedError(
            status, code, f"{self.cloud} refuses {method} {at}: {code or f'HTTP {status}'}: {message or text}{advice}"
        )

    def _once(self, method: str, path: str, body: object, again: bool) -> tuple[int, str, bytes]:
        headers = {"Accept": "application/json"}
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers["Content-Type"] = "application/json"
        elif method == "POST":
            headers["Content-Length"] = "0"

        def make() -> Request:
            own = {**headers, "Authorization": f"Bearer {self.bearers.token().text}"}
            return Request(method, self.url + path, own, data, again)

        answer = self.http.ask(make, never_throttled)
        return answer.status, answer.text, answer.body


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _error(told: object) -> tuple[str, str]:
    """Code and message of ``{"error": {"code": ..., "message": ...}}``; Google's code is HTTP's, its word is the reason."""
    error = told.get("error") if isinstance(told, Mapping) else None
    if not isinstance(error, Mapping):
        return "", ""
    reasons = [each.get("reason", "") for each in error.get("errors") or () if isinstance(each, Mapping)]
    code = reasons[0] if reasons else error.get("code", "")
    return str(code), str(error.get("message", ""))
