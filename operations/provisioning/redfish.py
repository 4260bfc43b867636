"""Redfish (DMTF DSP0266) as far as installing a machine needs it: JSON over TLS that is always verified."""

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

from operations.provisioning.trust import Login, Trust

ROOT = "/redfish/v1/"
_BUSY = (429, 503)
_STALE = (412, 428)
_NO_SESSIONS = (404, 405, 501)

Document = dict[str, Any]


class Kind(StrEnum):
    """What went wrong with a BMC, for machines."""

    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    LOGIN = "login"
    BUSY = "busy"
    MISSING = "missing"
    FAULT = "fault"


class BmcError(Exception):
    """A BMC doesn't do as it is asked; the text says which, and what to do."""

    def __init__(self, kind: Kind, text: str) -> None:
        self.kind = kind
        super().__init__(text)


@dataclass(frozen=True)
class Patience:
    """connect_s, read_s: of one request; BMCs take seconds to answer. tries: of what may be asked again.

    backoff_s: before the second try, and doubled for each after it.
    """

    connect_s: float = 5.0
    read_s: float = 30.0
    tries: int = 5
    backoff_s: float = 1.0

    def retry(self, *, repeatable: bool) -> Retry:
        """What may have been done is asked again only where doing it twice is doing it once. 503 is not done."""
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

    By a session where it has them: with Basic, some BMCs log in anew for each request, and write each into their log.
    gate: bounds how many BMCs are asked at once.
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
            text = f"{self} has no line in the file of pins; {shown}" if shown else f"{self} has no line there"
            raise BmcError(Kind.CERTIFICATE, f"{text}. If the BMC itself says the same, add it to the file")
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
        """What stands at a path."""
        return self._answered("GET", path)

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Change properties. Some BMCs want to hear which version is meant (DSP0266, If-Match)."""
        response = self._request("PATCH", path, body)
        if response.status in _STALE:
            tag = self._request("GET", path).headers.get("ETag", "*")
            response = self._request("PATCH", path, body, {"If-Match": tag})
        self._judge("PATCH", path, response)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Call an action."""
        self._answered("POST", path, body)

    def _answered(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Document:
        response = self._request(method, path, body)
        if response.status == 401 and self._session:
            # Sessions end after some minutes without a request (SessionService.SessionTimeout).
            self._log_in()
            response = self._request(method, path, body)
        self._judge(method, path, response)
        try:
            found = json.loads(response.data) if method == "GET" else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise BmcError(Kind.FAULT, f"{self} answers {path} with what isn't a JSON object; is it a Redfish service?")
        return found

    def _log_in(self) -> None:
        self._headers, self._session = {}, ""
        basic = base64.b64encode(f"{self._login.user}:{self._login.password}".encode()).decode()
        root = self._request("GET", ROOT)
        self._judge("GET", ROOT, root)
        sessions = _sessions(root.data)
        if sessions:
            body = {"UserName": self._login.user, "Password": self._login.password}
            made = self._request("POST", sessions, body)
            if made.status not in _NO_SESSIONS:
                self._judge("POST", sessions, made)
                self._headers = {"X-Auth-Token": made.headers.get("X-Auth-Token", "")}
                self._session = urlsplit(made.headers.get("Location", "")).path
                return
        self._headers = {"Authorization": f"Basic {basic}"}

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, more: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        if not path.startswith("/"):
            raise BmcError(Kind.FAULT, f"{self} names {path!r}, which isn't a path of its own")
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
                Kind.CERTIFICATE,
                f"{self} has a certificate that isn't vouched for ({text}); {hint}nothing was sent to it",
            ) from None
        raise BmcError(
            Kind.UNREACHABLE,
            f"{self} does not answer at port {self._port} ({type(cause).__name__}); is it cabled, and is the way there open?",
        ) from None

    def _shown(self) -> str:
        """What certificate it shows now. Nothing is sent; whether it is the BMC's own, only the BMC can say."""
        try:
            pem = ssl.get_server_certificate((str(self.address), self._port), timeout=self._patience.connect_s)
        except (OSError, ValueError):
            return ""
        return f"it shows sha256:{hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()}"

    def _judge(self, method: str, path: str, response: urllib3.BaseHTTPResponse) -> None:
        status = response.status
        if 200 <= status < 300:
            return
        said = _said(response.data)
        told = f"{self} answers {method} {path} with {status}{f': {said}' if said else ''}"
        if status == 401:
            text = f"{self} does not know user {self._login.user}, or another password; store it again with: ./menagerie secret"
            raise BmcError(Kind.LOGIN, text)
        if status == 403:
            raise BmcError(Kind.LOGIN, f"{told}; user {self._login.user} may not do that (role Operator can)")
        if status in _BUSY:
            raise BmcError(Kind.BUSY, f"{told}, {self._patience.tries} times; it may be starting: try again in minutes")
        if status in (404, 405, 501):
            raise BmcError(Kind.MISSING, f"{told}; its firmware may be too old, or lack a licence")
        raise BmcError(Kind.FAULT, told)


def _sessions(data: bytes) -> str:
    """Where sessions are made, "" where there are none (ServiceRoot.Links.Sessions)."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(data)["Links"]["Sessions"]["@odata.id"])
    return ""


def _said(data: bytes) -> str:
    """A BMC's own words for an error: those of @Message.ExtendedInfo are the clearer ones."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        error = json.loads(data)["error"]
        more = [one["Message"] for one in error.get("@Message.ExtendedInfo", ()) if one.get("Message")]
        return " ".join(more or [str(error["message"])]).strip()
    return ""
