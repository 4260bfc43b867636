"""The client of a cluster's API. Importing this module takes 40 MB: all of Kubernetes' models."""

from __future__ import annotations

from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException


class ApiClient(client.ApiClient):  # type: ignore[misc]  # the library has no types
    """The library's client, fixed to raise ApiException when TLS fails.

    kubernetes 36.0 decodes the body of every ApiException. If the TLS handshake fails (an API server that is being
    stopped), there is no body, and the resulting AttributeError would escape every caller that waits for the API.
    """

    def request(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().request(*arguments, **named)
        except ApiException as error:
            error.body = error.body or b""
            raise
