"""What an API server shows of its authorities before authentication, on real TLS servers."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from components.control_plane.host import greeting, leaf, serving
from stacks.certificates import Request, issue, new_authority
from tests.ports import free_port

KUBERNETES, NEWER, FRONT = (new_authority(name) for name in ("kubernetes", "kubernetes-2", "front-proxy"))
SHOWN = issue(KUBERNETES, Request("kube-apiserver", dns_names=("localhost",)))


@contextmanager
def server(folder: Path, *known: str) -> Iterator[int]:
    """Run a server that requests certificates of its known authorities; yield its port. Python's own servers name no authorities."""
    for name, text in {"shown.pem": SHOWN.certificate + SHOWN.private_key, "known.pem": "".join(known)}.items():
        (folder / name).write_text(text)
    port = free_port()
    words = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", f"{folder}/shown.pem", "-quiet"]
    words += ["-verify", "1", "-CAfile", f"{folder}/known.pem"] if known else []
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        yield port
    finally:
        running.kill()
        running.communicate()


@pytest.fixture
def pki(tmp_path: Path) -> Path:
    for name, text in (
        ("ca", KUBERNETES.certificate + NEWER.certificate),
        ("front-proxy-ca", FRONT.certificate),
        ("apiserver", SHOWN.certificate),
    ):
        (tmp_path / f"{name}.crt").write_text(text)
    return tmp_path


ALL = (KUBERNETES.certificate, NEWER.certificate, FRONT.certificate)


def test_a_server_shows_its_certificate_and_the_authorities_of_its_clients(pki):
    with server(pki, *ALL) as port:
        shown = greeting.greeting("127.0.0.1", port)
    assert shown.certificate == leaf.blocks(SHOWN.certificate)[0]
    assert len(shown.authorities) == 3
    assert serving.wrong_authorities(shown, pki) == ""


def test_missing_and_surplus_authorities_are_reported(pki):
    with server(pki, KUBERNETES.certificate, FRONT.certificate) as port:
        shown = greeting.greeting("127.0.0.1", port)
    assert "does not know clients of 1 of 3 authorities yet" in serving.wrong_authorities(shown, pki)
    (pki / "ca.crt").write_text(KUBERNETES.certificate)
    with server(pki, *ALL) as port:
        shown = greeting.greeting("127.0.0.1", port)
    assert "still knows clients of 1 authorities" in serving.wrong_authorities(shown, pki)


def test_a_certificate_that_differs_from_the_one_on_disk_is_reported(pki):
    (pki / "apiserver.crt").write_text(issue(NEWER, Request("kube-apiserver")).certificate)
    with server(pki, *ALL) as port:
        shown = greeting.greeting("127.0.0.1", port)
    assert "shows another certificate" in serving.wrong_authorities(shown, pki)


def test_other_servers_are_an_error(pki):
    with server(pki) as port, pytest.raises(OSError, match="asks for none"):
        greeting.greeting("127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises(OSError):
            greeting.greeting("127.0.0.1", listener.getsockname()[1])
        thread.join(20)
