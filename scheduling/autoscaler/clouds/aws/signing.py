"""Signatures of requests to AWS ("Create a signed AWS API request", version 4)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit

from scheduling.autoscaler.clouds.http import Request


@dataclass(frozen=True)
class Credentials:
    """expires: None for those that don't."""

    key: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)
    expires: datetime | None = None


def signed(
    credentials: Credentials, region: str, service: str, url: str, form: Mapping[str, str], now: datetime, again: bool
) -> Request:
    """A form to the service's root at `url`, which has no path."""
    body = urlencode(form)
    at = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": urlsplit(url).netloc,
        "x-amz-date": at,
    }
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = _digest(f"POST\n/\n\n{lines}\n{names}\n{_digest(body)}")
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    key = f"AWS4{credentials.secret}".encode()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{request}"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = f"Credential={credentials.key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return Request("POST", f"{url}/", {**headers, "authorization": f"AWS4-HMAC-SHA256 {proof}"}, body.encode(), again)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
