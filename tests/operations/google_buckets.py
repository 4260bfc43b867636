"""Buckets of Google Cloud without an account: fake-gcs-server, and in front of it the uploads of the XML API, which it lacks.

The engine uses the JSON API, and obstore the XML API. Sources, by page title: "Upload an object", "Initiate a multipart
upload", "Upload a part", "Complete a multipart upload", "Preconditions" of Cloud Storage. The server decides everything else:
objects, lists, generations and preconditions.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
import urllib.parse
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.ports import free_port
from tests.waiting import until

VARIABLE = "STORAGE_EMULATOR_HOST"
_OF_CONNECTION = frozenset({"connection", "content-length", "date", "host", "transfer-encoding"})


@dataclass
class GoogleBuckets:
    """The server with a folder as its storage: an object is a file. host: what STORAGE_EMULATOR_HOST names."""

    program: Path
    folder: Path
    port: int = field(default_factory=free_port)

    def start(self, *buckets: str) -> None:
        server = f"127.0.0.1:{self.port}"
        for bucket in buckets:
            (self.folder / bucket).mkdir(parents=True)
        words = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port), "-log-level", "error"]
        words += ["-public-host", server, "-external-url", f"http://{server}", "-filesystem-root", str(self.folder)]
        self._process = subprocess.Popen([str(self.program), *words], stdout=subprocess.DEVNULL)
        until(self._answers, "fake-gcs-server never answered", 30, 0.05)
        self._front = _Front(self.port)
        threading.Thread(target=self._front.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._front.server_port}"

    def put(self, bucket: str, name: str, data: bytes) -> None:
        """Write an object as somebody else."""
        status, _, said = _ask(self.port, "POST", _upload(bucket, name), data)
        assert status == 200, said

    def delete(self, bucket: str, name: str) -> None:
        path = f"/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"
        status, _, said = _ask(self.port, "DELETE", path)
        assert status == 200, said

    def _answers(self) -> bool:
        with suppress(OSError):
            return _ask(self.port, "GET", "/storage/v1/b")[0] == 200
        return False

    def stop(self) -> None:
        self._front.shutdown()
        self._front.server_close()
        self._process.kill()
        self._process.wait()


def _ask(
    port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}
) -> tuple[int, dict[str, str], bytes]:
    """Return the server's status, headers and body. It recognises its buckets by the name of the host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _upload(bucket: str, name: str, **more: str) -> str:
    query = {"uploadType": "media", "name": name, **more}
    return f"/upload/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(query)}"


class _Front(ThreadingHTTPServer):
    """Translates uploads of the XML API, and passes everything else on."""

    daemon_threads = True

    def __init__(self, behind: int) -> None:
        self.behind = behind
        self.parts: dict[str, dict[int, bytes]] = {}
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Front

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""

    def _pass_on(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_CONNECTION}
        status, given, said = _ask(self.server.behind, self.command, self.path, self._body(), headers)
        kept = {name: value for name, value in given.items() if name.lower() not in _OF_CONNECTION}
        size = given["Content-Length"] if self.command == "HEAD" and status == 200 else str(len(said))
        self._tell(status, said, {**kept, "Content-Length": size})

    do_GET = do_HEAD = do_DELETE = _pass_on

    def do_POST(self) -> None:
        path, query = self._asked()
        if path.startswith(("/storage/v1/", "/upload/storage/v1/")):
            self._pass_on()
        elif "uploads" in query:
            self._body()
            upload = uuid.uuid4().hex
            self.server.parts[upload] = {}
            answer = f"<Bucket>b</Bucket><Key>k</Key><UploadId>{upload}</UploadId>"
            self._tell(200, f"<InitiateMultipartUploadResult>{answer}</InitiateMultipartUploadResult>".encode())
        else:
            parts = self.server.parts.pop(query["uploadId"])
            numbers = re.findall(rb"<PartNumber>(\d+)</PartNumber>", self._body())
            self._put(path, b"".join(parts[int(number)] for number in numbers))

    def do_PUT(self) -> None:
        path, query = self._asked()
        if "uploadId" in query:
            self.server.parts[query["uploadId"]][int(query["partNumber"])] = self._body()
            self._tell(200, headers={"ETag": f'"{query["partNumber"]}"'})
        else:
            self._put(path, self._body())

    def _put(self, path: str, data: bytes) -> None:
        _, bucket, name = path.split("/", 2)
        generation = self.headers.get("x-goog-if-generation-match")
        only_if = {} if generation is None else {"ifGenerationMatch": generation}
        status, _, said = _ask(self.server.behind, "POST", _upload(bucket, urllib.parse.unquote(name), **only_if), data)
        if status != 200:
            self._tell(status, said)
            return
        made = json.loads(said)
        whole = f"<CompleteMultipartUploadResult><ETag>{made['etag']}</ETag></CompleteMultipartUploadResult>".encode()
        headers = {"ETag": f'"{made["etag"]}"', "x-goog-generation": str(made["generation"])}
        self._tell(200, whole if self.command == "POST" else b"", headers)

    def _asked(self) -> tuple[str, dict[str, str]]:
        path, _, query = self.path.partition("?")
        return path, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _tell(self, status: int, body: bytes = b"", headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
