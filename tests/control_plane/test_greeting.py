"""What an API server says of its authorities before it knows who asks, against servers that speak TLS for real."""

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
    """Asks for a certificate of the authorities that it knows; its port. Python's own servers name no authorities."""
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


def test_a_server_says_what_it_shows_and_whose_clients_it_knows(pki):
    with server(pki, *ALL) as port:
        said = greeting.greeting("127.0.0.1", port)
    assert said.certificate == leaf.blocks(SHOWN.certificate)[0]
    assert len(said.authorities) == 3
    assert serving.wrong_authorities(said, pki) == ""


def test_an_authority_too_few_or_too_many_is_told(pki):
    with server(pki, KUBERNETES.certificate, FRONT.certificate) as port:
        said = greeting.greeting("127.0.0.1", port)
    assert "does not know clients of 1 of 3 authorities yet" in serving.wrong_authorities(said, pki)
    (pki / "ca.crt").write_text(KUBERNETES.certificate)
    with server(pki, *ALL) as port:
        said = greeting.greeting("127.0.0.1", port)
    assert "still knows clients of 1 authorities" in serving.wrong_authorities(said, pki)


def test_another_certificate_than_the_one_on_the_disk_is_told(pki):
    (pki / "apiserver.crt").write_text(issue(NEWER, Request("kube-apiserver")).certificate)
    with server(pki, *ALL) as port:
        said = greeting.greeting("127.0.0.1", port)
    assert "shows another certificate" in serving.wrong_authorities(said, pki)


def test_what_is_no_such_server_is_an_error_and_no_answer(pki):
    with server(pki) as port, pytest.raises(OSError, match="asks for none"):
        greeting.greeting("127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises(OSError):
            greeting.greeting("127.0.0.1", listener.getsockname()[1])
        thread.join(20)
