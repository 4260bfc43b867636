"""Policies of azure-core's pipeline that all requests to Azure's Resource Manager need."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.policies import RetryPolicy, SansIOHTTPPolicy

from clients.clouds import CallError

LONGEST_PAUSE_S = 20
"""The longest pause between two attempts."""


class Retries(RetryPolicy[Any, Any]):
    """Does not retry if Azure asks to wait for minutes."""

    def is_retry(self, settings: dict[str, Any], response: Any) -> bool:
        return (self.get_retry_after(response) or 0) <= LONGEST_PAUSE_S and bool(super().is_retry(settings, response))


class OneServer(SansIOHTTPPolicy[Any, Any]):
    """Requests further pages only from the server of the first one, because each request carries the token.

    Errors: raises CallError for another server.
    """

    def __init__(self) -> None:
        self._host = ""

    def on_request(self, request: PipelineRequest[Any]) -> None:
        host = urlsplit(request.http_request.url).netloc
        self._host = self._host or host
        if host != self._host:
            raise CallError(f"Azure's next page is on another server, {host}; it is not requested")
