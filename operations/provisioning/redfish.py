"""The part of Redfish (DMTF DSP0266) that installations need: JSON over TLS, which is always verified."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, SSLError
from urllib3.util import Retry, Timeout

from clients.timeouts import CONNECT_S
from cluster.errors import FailedError
from operations.provisioning.trust import Login, Trust

ROOT = "/redfish/v1/"
_BUSY = (429, 503)
_STALE = (412, 428)
_NO_SESSIONS = (404, 405, 501)

Document = dict[str, Any]


class BmcErrorKind(StrEnum):
    """Kind of a BMC's error, machine-readable."""

    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    LOGIN = "login"
    BUSY = "busy"
    MISSING = "missing"
    FAULT = "fault"


class BmcError(FailedError):
    """A BMC failed or refused; the text says which, and what to do."""

    code = "machines-failed"

    def __init__(self, kind: BmcErrorKind, text: str) -> None:
        self.kind = kind
        super().__init__(text)


@dataclass(frozen=True)
class Patience:
    """connect_s, read_s: time-outs of one request; BMCs take seconds to respond. tries: of requests that may be retried.

    backoff_s: before the second try, doubled for each further one.
    """

    connect_s: float = CONNECT_S
    read_s: float = 30.0
    tries: int = 5
    backoff_s: float = 1.0

    def retry(self, *, repeatable: bool) -> Retry:
        """Return the retry policy. A request that may have been executed is retried only if it is idempotent (`repeatable`). After
        503, it was not executed."""
        more = self.tries - 1
        return Retry(
            total=None,
            connect=more,
            read=more if repeatable else 0,
            status=more,
            other=0,
            redirect=False,
            allowed_methods=None,
            status_forcelist=_BUSY,
            backoff_factor=self.backoff_s / 2,
            backoff_max=15,
            retry_after_max=30,
            raise_on_status=False,
        )


class Redfish:
    """One BMC, logged in for the length of a block.

    Uses a session if the BMC supports them: with Basic authentication, some BMCs log every request as a login. gate: limits
    how many BMCs are contacted at once.
    """

    def __init__(
        self,
        address: IPv4Address,
        port: int,
        login: Login,
        trust: Trust,
        *,
        patience: Patience | None = None,
        gate: threading.Semaphore | None = None,
    ) -> None:
        self.address = address
        self._port = port
        self._login = login
        self._gate = gate or threading.Semaphore()
        self._patience = patience or Patience()
        self._headers: dict[str, str] = {}
        self._session = ""
        pin = trust.pins.get(address)
        if trust.ca is None and pin is None:
            shown = self._shown()
            text = f"{self} has no line in the pins file" + (f"; {shown}" if shown else "")
            raise BmcError(
                BmcErrorKind.CERTIFICATE, f"{text}. If the BMC's own console shows the same, add it to the file"
            )
        verified: dict[str, Any] = (
            {"ca_certs": str(trust.ca)} if trust.ca else {"cert_reqs": "CERT_NONE", "assert_fingerprint": pin}
        )
        timeout = Timeout(connect=self._patience.connect_s, read=self._patience.read_s)
        self._pool = urllib3.HTTPSConnectionPool(str(address), port, timeout=timeout, maxsize=1, **verified)

    def __str__(self) -> str:
        return f"BMC {self.address}"

    def __enter__(self) -> Self:
        self._log_in()
        return self

    def __exit__(self, *_: object) -> None:
        if self._session:
            with suppress(BmcError):
                self._request("DELETE", self._session)
        self._pool.close()

    def get(self, path: str) -> Document:
        """Return the document at a path."""
        return self._request_json("GET", path)

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Change properties. Some BMCs require the version of the document (DSP0266, If-Match)."""
        response = self._request("PATCH", path, body)
        if response.status in _STALE:
            tag = self._request("GET", path).headers.get("ETag", "*")
            response = self._request("PATCH", path, body, {"If-Match": tag})
        self._judge("PATCH", path, response)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Call an action."""
        self._request_json("POST", path, body)

    def _request_json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Document:
        response = self._request(method, path, body)
        if response.status == 401 and self._session:
            # Sessions end after some minutes without a request (SessionService.SessionTimeout).
            self._log_in()
            response = self._request(method, path, body)
        self._judge(method, path, response)
        try:
            document = json.loads(response.data) if method == "GET" else {}
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise BmcError(
                BmcErrorKind.FAULT,
                f"{self} responds to {path} with something that isn't a JSON object; is it a Redfish service?",
            )
        return document

    def _log_in(self) -> None:
        self._headers, self._session = {}, ""
        basic = base64.b64encode(f"{self._login.user}:{self._login.password}".encode()).decode()
        root = self._request("GET", ROOT)
        self._judge("GET", ROOT, root)
        sessions = _sessions(root.data)
        if sessions:
            body = {"UserName": self._login.user, "Password": self._login.password}
            created = self._request("POST", sessions, body)
            if created.status not in _NO_SESSIONS:
                self._judge("POST", sessions, created)
                self._headers = {"X-Auth-Token": created.headers.get("X-Auth-Token", "")}
                self._session = urlsplit(created.headers.get("Location", "")).path
                return
        self._headers = {"Authorization": f"Basic {basic}"}

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, more: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        if not path.startswith("/"):
            raise BmcError(BmcErrorKind.FAULT, f"{self} links to {path!r}, which isn't a path on the BMC")
        headers = {"Accept": "application/json", "OData-Version": "4.0", **self._headers, **(more or {})}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            with self._gate:
                retry = self._patience.retry(repeatable=method != "POST")
                return self._pool.urlopen(method, path, data, headers, retries=retry, redirect=False)
        except HTTPError as error:
            self._explain(error)

    def _explain(self, error: HTTPError) -> NoReturn:
        cause: object = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        if isinstance(cause, SSLError):
            text = str(cause).removesuffix(")").rpartition("] ")[2]
            hint = f"{shown}; " if (shown := self._shown()) else ""
            raise BmcError(
                BmcErrorKind.CERTIFICATE,
                f"{self} has a certificate that can't be verified ({text}); {hint}nothing was sent to it",
            ) from None
        raise BmcError(
            BmcErrorKind.UNREACHABLE,
            f"{self} does not respond at port {self._port} ({type(cause).__name__}); check its cable, and routes and firewalls to it",
        ) from None

    def _shown(self) -> str:
        """Return which certificate it presents. Sends no data. Only the BMC's own console can tell whether it is the BMC's."""
        try:
            pem = ssl.get_server_certificate((str(self.address), self._port), timeout=self._patience.connect_s)
        except (OSError, ValueError):
            return ""
        return f"it presents sha256:{hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()}"

    def _judge(self, method: str, path: str, response: urllib3.BaseHTTPResponse) -> None:
        status = response.status
        if 200 <= status < 300:
            return
        reason = _error_text(response.data)
        problem = f"{self} responds to {method} {path} with {status}{f': {reason}' if reason else ''}"
        if status == 401:
            text = f"{self} rejects user {self._login.user} or the password; store them again: {self._login.store}"
            raise BmcError(BmcErrorKind.LOGIN, text)
        if status == 403:
            raise BmcError(
                BmcErrorKind.LOGIN, f"{problem}; user {self._login.user} has no permission (role Operator has)"
            )
        if status in _BUSY:
            raise BmcError(
                BmcErrorKind.BUSY,
                f"{problem}, {self._patience.tries} times; it may be starting: try again in a few minutes",
            )
        if status in (404, 405, 501):
            raise BmcError(BmcErrorKind.MISSING, f"{problem}; its firmware may be too old, or a licence may be missing")
        raise BmcError(BmcErrorKind.FAULT, problem)


def _sessions(data: bytes) -> str:
    """Return where to create sessions, "" if there are none (ServiceRoot.Links.Sessions)."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(data)["Links"]["Sessions"]["@odata.id"])
    return ""


def _error_text(data: bytes) -> str:
    """Return a BMC's text for an error. @Message.ExtendedInfo has the clearer texts."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        error = json.loads(data)["error"]
        details = [item["Message"] for item in error.get("@Message.ExtendedInfo", ()) if item.get("Message")]
        return " ".join(details or [str(error["message"])]).strip()
    return ""
