"""Calls to AWS that only read, through boto3."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from clients import clouds
from clients.clouds import CallError, LoginError, one_line
from clients.clouds.aws_login import limits, session

_READS = ("describe_", "get_", "head_", "list_", "simulate_")
"""Beginnings of the names of operations that change nothing."""
_STALE = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_ABSENT = frozenset(
    {
        "404",
        "InvalidAMIID.NotFound",
        "NoSuchEntity",
        "NoSuchResourceException",
        "ParameterNotFound",
        "ResourceNotFoundException",
    }
)
_DENIED = 403


class AwsReader:
    """Sends requests to one region. Errors: methods raise LoginError, which ends with the advice, or CallError."""

    def __init__(self, region: str, advice: str) -> None:
        self.region = region
        self._advice = advice
        self._session: Any = None
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, operation: str, **arguments: Any) -> Any:
        """Return the answer to a request. operation: as boto3 names it."""
        return self._ask(service, operation, lambda client: getattr(client, operation)(**arguments))

    def every(self, service: str, operation: str, key: str, **arguments: Any) -> list[Any]:
        """Return the items of a list, from all its pages. key: where a page has them."""

        def pages(client: Any) -> list[Any]:
            listed = client.get_paginator(operation).paginate(**arguments)
            return [item for page in listed for item in page[key]]

        items: list[Any] = self._ask(service, operation, pages)
        return items

    def _ask(self, service: str, operation: str, send: Callable[[Any], Any]) -> Any:
        if not operation.startswith(_READS):
            raise ValueError(f"{service}.{operation} may change something")
        try:
            return send(self._client(service))
        except ClientError as error:
            raise self._read(service, error) from None
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise LoginError(f"AWS: {one_line(error)}; {self._advice}") from None
        except (HTTPClientError, NoConnectionError) as error:
            raise CallError(f"no answer from AWS: {one_line(error)}") from None
        except (BotoCoreError, OSError, RuntimeError) as error:
            # A missing profile or token file, an expired SSO session.
            raise LoginError(f"AWS: {one_line(error)}; {self._advice}") from None

    def _client(self, service: str) -> Any:
        with self._lock:  # a session is not for several threads; its clients are
            if self._session is None:
                self._session = session(self.region)
            if service not in self._clients:
                self._clients[service] = self._session.client(service, config=limits(clouds.TRIES))
            return self._clients[service]

    def _read(self, service: str, error: ClientError) -> CallError | LoginError:
        code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        text = f"AWS answers {service}:{error.operation_name} with {code}: {one_line(message)}"
        if code in _STALE:
            return LoginError(f"{text}; {self._advice}")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return CallError(
            text,
            refused=status == _DENIED or "AccessDenied" in code or code == "UnauthorizedOperation",
            missing=code in _ABSENT,
        )
