from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.api_client import ApiClient


@pytest.fixture
def hangs_up() -> Iterator[str]:
    """URL of a server that accepts and closes connections, like an API server that is being stopped."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.recv(65536)
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_server_that_closes_the_connection_in_the_handshake_is_an_api_error(hangs_up: str) -> None:
    configuration = client.Configuration(host=hangs_up)
    configuration.retries = False
    with pytest.raises(ApiException) as caught:
        client.CoreV1Api(ApiClient(configuration)).list_node(_request_timeout=5)
    assert caught.value.status == 0
