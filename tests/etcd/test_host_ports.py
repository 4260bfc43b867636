"""Ports for a temporary etcd on a member's host."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from menagerie_etcd import ports


@pytest.fixture
def connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in place of net.ipv4.ip_local_port_range."""
    path = tmp_path / "range"
    monkeypatch.setattr(ports, "_OF_CONNECTIONS", path)
    return path


@pytest.mark.parametrize(("text", "below"), [("32768\t60999\n", 32768), ("1024\t65535\n", 20000)])
def test_ports_are_below_those_of_connections_if_there_is_room(connections: Path, text: str, below: int) -> None:
    connections.write_text(text)
    unused = ports.unused(50)
    assert len(set(unused)) == 50
    assert all(10000 <= port < below for port in unused)


def test_a_port_with_a_listener_is_not_unused(connections: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections.write_text("0 0")
    with socket.create_server(("127.0.0.1", ports.unused(1)[0])) as listening:
        monkeypatch.setattr(ports.random.SystemRandom, "sample", lambda *_: [listening.getsockname()[1]])
        with pytest.raises(OSError, match=r"no 1 ports of 127\.0\.0\.1 from 10000 to 20000 are free"):
            ports.unused(1)
