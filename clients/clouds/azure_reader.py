"""GET requests to Azure's Resource Manager, through azure-core's pipeline with azure-identity.

The management libraries would be five packages for a dozen documented GETs: docs/decisions/0109-doctor.md.
"""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

from azure.core import PipelineClient
from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.core.rest import HttpRequest

from clients import clouds
from clients.clouds import TRIES, CallError, LoginError, one_line
from clients.clouds.azure_login import Credential, subscription
from clients.clouds.azure_policies import LONGEST_PAUSE_S, OneServer, Retries

_SERVER = "https://management.azure.com"
_SCOPE = f"{_SERVER}/.default"
_MOST_PAGES = 200
_DENIED, _ABSENT, _THROTTLED = 403, 404, 429


class AzureReader:
    """Sends requests about one subscription. Errors: methods raise LoginError, which ends with the advice, or CallError."""

    def __init__(self, advice: str) -> None:
        self.advice = advice
        self._client: Any = None
        self._lock = threading.Lock()

    @property
    def subscription(self) -> str:
        return subscription()

    def get(self, path: str, version: str, **query: str) -> Any:
        """Return what is at a path below the subscription. version: of the API."""
        return self.at(f"/subscriptions/{subscription()}{path}", version, **query)

    def at(self, id_: str, version: str, **query: str) -> Any:
        """Return the resource with an ID, in any subscription."""
        return self._ask(f"{_SERVER}{id_}", {"api-version": version, **query})

    def every(self, path: str, version: str, **query: str) -> list[Any]:
        """Return the items of a list, from all its pages. Some lists are an array without pages."""
        page = self.get(path, version, **query)
        if isinstance(page, list):
            return page
        items = list(page.get("value", ()))
        for _ in range(_MOST_PAGES):
            if not (after := page.get("nextLink")):
                return items
            page = self._ask(after, {})
            items += page.get("value", ())
        raise CallError(f"Azure's list at {path} does not end")

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token, which name the identity; {} if the token is no JWT. They are not verified."""
        body = self._credential().get_token(_SCOPE).token.split(".")[1:2]
        try:
            claims = json.loads(base64.urlsafe_b64decode(body[0] + "=" * (-len(body[0]) % 4)))
        except (IndexError, ValueError):
            return {}
        return claims if isinstance(claims, dict) else {}

    def _credential(self) -> Credential:
        return Credential(self.advice)

    def _ask(self, url: str, query: dict[str, str]) -> Any:
        request = HttpRequest("GET", url, params=query)
        try:
            response = self._connected().send_request(request)
            response.raise_for_status()
            return response.json()
        except ClientAuthenticationError as error:
            raise LoginError(f"Azure does not accept the token: {_words(error)}; {self.advice}") from None
        except (DecodeError, ValueError) as error:
            raise CallError(f"Azure's answer can't be read: {one_line(error)}") from None
        except HttpResponseError as error:
            raise _read(request, error, self.advice) from None
        except AzureError as error:
            raise CallError(f"no answer from Azure: {one_line(error)}") from None

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                policies = [
                    OneServer(),
                    Retries(retry_total=TRIES - 1, retry_backoff_max=LONGEST_PAUSE_S),
                    BearerTokenCredentialPolicy(self._credential(), _SCOPE),
                ]
                self._client = PipelineClient(
                    _SERVER, policies=policies, connection_timeout=clouds.CONNECT_S, read_timeout=clouds.READ_S
                )
            return self._client


def _read(request: HttpRequest, error: HttpResponseError, advice: str) -> CallError | LoginError:
    status = error.status_code or 0
    if status == 401:
        return LoginError(f"Azure does not accept the token: {_words(error)}; {advice}")
    verb = "throttles" if status == _THROTTLED else "answers"
    text = f"Azure {verb} {_line(request)} with {status} {_words(error)}"
    return CallError(text, refused=status == _DENIED, missing=status == _ABSENT)


def _line(request: HttpRequest) -> str:
    return f"GET {request.url.partition('?')[0].removeprefix(_SERVER)}"


def _words(error: HttpResponseError) -> str:
    details = error.error
    return one_line(f"{details.code}: {details.message}" if details else error.message)
