"""Serve a bundle: its files in upstream's layout, and its images as a registry, read-only, straight from the file.

Registry paths: OCI Distribution Specification 1.1, "Pulling manifests" and "Pulling blobs".
"""

from __future__ import annotations

import json
import os
import re
import ssl
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from clients.tls import PairError, server_context
from cluster.bundles import Kind
from operations.bundles.images import media_of
from operations.bundles.opened import OpenBundle
from operations.mirrors.push import MirrorError

_CHUNK = 1 << 20
_FILE = "application/octet-stream"
_MOST_MANIFEST = 4 << 20
"""Bytes of a manifest (OCI Distribution Specification, "Pushing Manifests": registries accept at least this much)."""
_REGISTRY = re.compile(r"/v2/([a-z0-9][a-z0-9._/-]*)/(manifests|blobs)/([A-Za-z0-9_][A-Za-z0-9_.:-]{0,127})")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class ServedBlob:
    """What a path leads to: a blob, and its media type."""

    sha256: str
    media: str = _FILE


class Catalogue:
    """Paths of a verified bundle. They are compared as they are: none of them is a path of a file system."""

    def __init__(self, bundle: OpenBundle) -> None:
        self._files: dict[str, ServedBlob] = {}
        self._parts: dict[tuple[str, str, str], ServedBlob] = {}
        for entry in bundle.index.entries:
            if entry.kind is not Kind.IMAGE:
                self._files[f"/{entry.source}"] = ServedBlob(entry.sha256)
                continue
            repository, _, tag = entry.source.partition("/")[2].rpartition(":")
            root = ServedBlob(entry.sha256, entry.media)
            self._parts[repository, "manifests", tag] = root
            self._parts[repository, "manifests", f"sha256:{entry.sha256}"] = root
            for blob in entry.needs:
                self._parts[repository, "blobs", f"sha256:{blob}"] = ServedBlob(blob)
                if media := _manifest_type(bundle, blob):
                    self._parts[repository, "manifests", f"sha256:{blob}"] = ServedBlob(blob, media)

    def find(self, path: str) -> ServedBlob | None:
        """Return what a request's path leads to, None for nothing."""
        if match := _REGISTRY.fullmatch(path):
            return self._parts.get((match[1], match[2], match[3]))
        return self._files.get(path)


def _manifest_type(bundle: OpenBundle, blob: str) -> str:
    """Return the media type of a manifest that an index names, "" for any other blob."""
    if bundle.index.sizes[blob] > _MOST_MANIFEST:
        return ""
    data = bundle.read(blob)
    try:
        document = json.loads(data) if data[:1] == b"{" else {}
    except ValueError:
        return ""
    return (
        media_of(document) if {"schemaVersion"} <= document.keys() and {"config", "manifests"} & document.keys() else ""
    )


def tls_of(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return what a server needs for TLS, from two files in PEM. Raises MirrorError if they are not a pair."""
    try:
        return server_context(certificate, key, "mirror")
    except PairError as error:
        raise MirrorError(str(error)) from None


def server(
    bundle: OpenBundle, address: str, port: int, say: Callable[[str], None], tls: ssl.SSLContext | None = None
) -> ThreadingHTTPServer:
    """Return a server that listens; port 0 picks a free one. The bundle must stay open, and was verified. Raises OSError."""
    return _Server(bundle, (address, port), say, tls)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        bundle: OpenBundle,
        address: tuple[str, int],
        say: Callable[[str], None],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.bundle, self.catalogue, self.say = bundle, Catalogue(bundle), say
        super().__init__(address, _Handler)
        if tls:
            # The handshake happens in the thread of the connection, so a silent client delays nobody.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in one line why a connection ended: a client that does not trust the certificate is no bug of ours."""
        self.say(f"{client_address}: {sys.exception()}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "menagerie-mirror", ""
    timeout = 60
    server: _Server

    def do_GET(self) -> None:
        if span := self._head():
            self._send(*span)

    def do_HEAD(self) -> None:
        self._head()

    def _head(self) -> tuple[int, int] | None:
        """Send status and headers; return offset and length of what a GET sends."""
        path = unquote(urlsplit(self.path).path)
        blob = self.server.catalogue.find(path)
        if blob is None:
            is_registry = path in ("/v2", "/v2/")
            self._status(HTTPStatus.OK if is_registry else HTTPStatus.NOT_FOUND, 0, {})
            return None
        at, size = self.server.bundle.places[blob.sha256]
        span = _span(self.headers.get("Range", ""), size)
        if span is None:
            self._status(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, {"Content-Range": f"bytes */{size}"})
            return None
        first, length = span
        named = {
            "Content-Type": blob.media,
            "Accept-Ranges": "bytes",
            "ETag": f'"{blob.sha256}"',
            "Docker-Content-Digest": f"sha256:{blob.sha256}",
        }
        if length == size:
            self._status(HTTPStatus.OK, length, named)
        else:
            part = {"Content-Range": f"bytes {first}-{first + length - 1}/{size}"}
            self._status(HTTPStatus.PARTIAL_CONTENT, length, {**named, **part})
        return at + first, length

    def _status(self, status: HTTPStatus, length: int, named: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**named, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, at: int, left: int) -> None:
        descriptor = self.server.bundle.file.fileno()
        while left and (chunk := os.pread(descriptor, min(_CHUNK, left), at)):
            self.wfile.write(chunk)
            at, left = at + len(chunk), left - len(chunk)
        self.close_connection = self.close_connection or bool(left)  # the file was cut off meanwhile

    def log_message(self, format: str, *args: object) -> None:
        self.server.say(f"{self.address_string()} {format % args}")


def _span(asked: str, size: int) -> tuple[int, int] | None:
    """Return the offset and length to send, None for a range outside of the file. Other forms of ranges get everything."""
    match = _RANGE.fullmatch(asked)
    if not match or not (match[1] or match[2]) or not size:
        return 0, size
    if not match[1]:
        length = min(int(match[2]), size)
        return (size - length, length) if length else None
    first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
    return (first, last - first + 1) if first <= last else None
