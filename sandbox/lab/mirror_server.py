"""The artefact mirror's server: ``python -m sandbox.lab.mirror_server ADDRESS PORT FOLDER``.

Serves ``FOLDER/<upstream host>/<path>`` unchanged, without listings. Standard library only.
"""

from __future__ import annotations

import io
import socket
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def list_directory(self, path: Any) -> None:
        del path
        self.send_error(HTTPStatus.NOT_FOUND, "the mirror has no such file")

    def copyfile(self, source: Any, outputfile: Any) -> None:
        # Programs are 100 MB each and every host fetches them at once, so let the kernel copy them.
        connection: socket.socket = self.connection
        if isinstance(source, io.BufferedReader):
            outputfile.flush()
            connection.sendfile(source)
        else:
            super().copyfile(source, outputfile)


def make(address: str, port: int, folder: Path) -> ThreadingHTTPServer:
    """Return a server that already listens; port 0 picks a free port."""
    return _Server((address, port), partial(_Handler, directory=str(folder)))


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])).serve_forever()
