"""Puts objects into a bucket of AWS, Azure or Google Cloud, or of any S3 server, and never overwrites one.

A host has only its own cloud's module: a host's payload must be small.
"""

from __future__ import annotations

import importlib
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Dict

Headers = Dict[str, str]

TIMEOUT_S = 20
METADATA = "http://169.254.169.254"
"""The metadata service of all three clouds."""


class BucketError(OSError):
    """The bucket or the metadata service refuses or does not answer."""


def put(settings: dict[str, Any], name: str, data: bytes) -> bool:
    """Put an object. Return False if one of this name exists. BucketError for any other failure.

    settings: `control_plane.audit_log.settings`, with ``metadata`` and ``url`` in tests.
    """
    try:
        is_new: bool = importlib.import_module(f".bucket_{settings['kind']}", __package__).put(settings, name, data)
        return is_new
    except (HTTPException, OSError, ValueError, KeyError) as error:
        if isinstance(error, BucketError):
            raise
        raise BucketError(f"bucket {settings['name']}: {type(error).__name__}: {error}") from error


def made(status: int, said: str, settings: dict[str, Any], needed: str) -> bool:
    if status in (200, 201):
        return True
    more = f" (needed: {needed})" if status == 403 else ""
    raise BucketError(f"bucket {settings['name']}: HTTP {status} {' '.join(said.split())[:400]}{more}")


def told(server: str, method: str, path: str, headers: Headers) -> str:
    status, said = send(server, method, path, headers)
    if status != 200:
        raise BucketError(f"{server}{path.split('?')[0]}: HTTP {status} {' '.join(said.split())[:400]}")
    return said


def send(server: str, method: str, path: str, headers: Headers, data: bytes | None = None) -> tuple[int, str]:
    kind = HTTPSConnection if server.startswith("https:") else HTTPConnection
    connection = kind(server.split("//")[1], timeout=TIMEOUT_S)
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()
