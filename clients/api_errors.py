"""Errors of requests to a cluster's API, as the command's kinds.

They are also the errors that the Kubernetes library raises for the same causes, so that a caller which makes typed calls
as well needs one handler. Importing this module imports the library.
"""

from __future__ import annotations

from http import HTTPStatus

import urllib3
from kubernetes.client.exceptions import ApiException

from cluster.errors import FailedError


class ApiStatusError(FailedError, ApiException):  # type: ignore[misc]  # the library has no types
    """The API server answered with an error. status, reason, body: its answer."""

    code = "api"

    def __init__(self, status: int, reason: str, body: str = "") -> None:
        self.text = f"the API server answers {status} {reason}: {body}"
        super().__init__(self.text)
        self.status, self.reason, self.body = status, reason, body
        self.retryable = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS

    def __str__(self) -> str:
        return self.text


class ApiSilentError(FailedError, urllib3.exceptions.HTTPError):
    """The API server did not answer in time, or not completely. why: the class of urllib3's error."""

    code = "api-unreachable"
    retryable = True

    def __init__(self, cause: urllib3.exceptions.HTTPError) -> None:
        super().__init__(f"the API server does not answer: {cause}")
        self.why = cause_of(cause)


def cause_of(error: Exception) -> str:
    """Return the class of an error of the API, for short reasons; urllib3's if the API server did not answer.

    The last try's of an error that says only that all tries failed.
    """
    if isinstance(error, ApiSilentError):
        return error.why
    tried = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else None
    return type(tried or error).__name__
