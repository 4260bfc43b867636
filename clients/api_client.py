"""The client of a cluster's API. Importing this costs 40 MB: all of Kubernetes' models."""

from __future__ import annotations

from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException


class ApiClient(client.ApiClient):  # type: ignore[misc]  # the library has no types
    """The library's, with a failure of TLS as the ApiException that it is.

    kubernetes 36.0 decodes the body of every ApiException, and that of a connection which TLS could not be agreed on (an API
    server that is being stopped) has none: an AttributeError would get past everybody who waits for the API.
    """

    def request(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().request(*arguments, **named)
        except ApiException as error:
            error.body = error.body or b""
            raise
