"""The clouds' stores and metadata services on the lab's own network, reachable by the lab's hosts."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

from sandbox.lab import networks, plan
from tests.stacks.fake_stores import Cloud, handler

_CLONE_NEWNET = 0x40000000  # setns(2)


def listening(netns: str, address: str) -> socket.socket:
    """Return a socket that listens in another network namespace; a socket stays where it was created."""

    def create() -> socket.socket:
        with Path("/run/netns", netns).open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), netns)
        return socket.create_server((address, 0))

    # A namespace is set per thread, and this thread ends.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(create).result()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore errors: a host that has waited long enough hangs up."""


@contextmanager
def served(cloud: Cloud) -> Iterator[None]:
    """Serve `cloud` next to the lab's registry and mirror, where every host can reach it; set its URLs."""
    listener = listening(networks.netns("services"), str(plan.SERVICES_ADDRESS))
    server = _Server(listener.getsockname(), handler(cloud), bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    cloud.url = cloud.metadata = f"http://{plan.SERVICES_ADDRESS}:{listener.getsockname()[1]}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
