"""Requests to Google's APIs that only read, through google-auth's session.

A library for each API would be four packages for a dozen documented requests: docs/decisions/0109-doctor.md.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import requests
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from clients import clouds
from clients.clouds import CallError, LoginError, one_line
from clients.clouds.gcp_login import find

_MOST_PAGES = 200
_REPEATED = (429, 500, 502, 503, 504)
_DENIED, _ABSENT, _THROTTLED, _NOBODY = 403, 404, 429, 401
_PROJECTS = "https://cloudresourcemanager.googleapis.com/v3/projects"
_AT_ONCE = 100
"""Permissions in one request. The documentation of the method states no limit for projects."""


class GoogleReader:
    """Sends requests about one project. Errors: methods raise LoginError, which ends with the advice, or CallError."""

    def __init__(self, advice: str, project: str = "") -> None:
        self.advice = advice
        self._project = project
        self._cached_login: tuple[Credentials, str] | None = None
        self._lock = threading.Lock()

    @property
    def project(self) -> str:
        return self._project or self._login()[1]

    @property
    def who(self) -> str:
        """The service account's address; "" for a person's login, which does not carry its name."""
        return str(getattr(self._login()[0], "service_account_email", "") or "")

    def get(self, url: str, **query: str | list[str]) -> Any:
        """Return the answer to a GET."""
        return self._ask("GET", url, params=query)

    def every(self, url: str, key: str, **query: str) -> list[Any]:
        """Return the items of a list, from all its pages. key: where a page has them."""
        items: list[Any] = []
        for _ in range(_MOST_PAGES):
            page = self.get(url, **query)
            items += page.get(key, ())
            if not (after := page.get("nextPageToken")):
                return items
            query = {**query, "pageToken": after}
        raise CallError(f"Google's list at {url} does not end")

    def granted(self, permissions: Sequence[str]) -> frozenset[str]:
        """Return those of the permissions that the caller has on the project. The POST changes nothing, and needs no right."""
        url = f"{_PROJECTS}/{self.project}:testIamPermissions"
        batches = [list(permissions[at : at + _AT_ONCE]) for at in range(0, len(permissions), _AT_ONCE)]
        answers = [self._ask("POST", url, json={"permissions": batch}) for batch in batches]
        return frozenset(each for answer in answers for each in answer.get("permissions", ()))

    def _login(self) -> tuple[Credentials, str]:
        with self._lock:
            if self._cached_login is None:
                self._cached_login = find(self.advice)
            return self._cached_login

    def _ask(self, method: str, url: str, **arguments: Any) -> Any:
        credentials, _ = self._login()
        try:
            with AuthorizedSession(credentials) as session:
                session.mount("https://", HTTPAdapter(max_retries=_retries()))
                limits = (clouds.CONNECT_S, clouds.READ_S)
                response = session.request(method, url, timeout=limits, max_allowed_time=None, **arguments)
        except GoogleAuthError as error:
            raise LoginError(f"there is no token for Google Cloud: {one_line(error)}; {self.advice}") from None
        except requests.RequestException as error:
            raise CallError(f"no answer from Google Cloud: {one_line(error)}") from None
        return self._read(method, response)

    def _read(self, method: str, response: requests.Response) -> Any:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.ok and isinstance(answer, dict):
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        message = one_line(error.get("message", "") if isinstance(error, dict) else response.text)
        if response.status_code == _NOBODY:
            raise LoginError(f"Google Cloud does not accept the login: {message}; {self.advice}")
        verb = "throttles" if response.status_code == _THROTTLED else "answers"
        raise CallError(
            f"Google Cloud {verb} {method} {response.url.partition('?')[0]} with {response.status_code}: {message}",
            refused=response.status_code == _DENIED,
            missing=response.status_code == _ABSENT,
        )


def _retries() -> Retry:
    return Retry(
        total=clouds.TRIES - 1,
        status_forcelist=_REPEATED,
        allowed_methods=None,
        backoff_factor=1,
        respect_retry_after_header=False,
        raise_on_status=False,
    )
