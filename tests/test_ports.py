"""Ports for programs that start later, and their places in flags."""

from __future__ import annotations

import socket

from tests.ports import at_ports, free_ports


def test_free_ports_differ_and_nothing_listens_on_them() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_ports_of_loopback_urls_are_replaced_once_even_if_a_new_one_begins_with_an_old_one() -> None:
    flags = [
        "--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379",
        "--listen-metrics-urls=http://127.0.0.1:2381",
        "--listen-client-http-urls=https://127.0.0.1:2389",
    ]
    assert at_ports(flags, {2379: 23817, 2381: 23890, 2389: 20757}) == [
        "--listen-client-urls=https://127.0.0.1:23817,https://10.0.0.1:2379",
        "--listen-metrics-urls=http://127.0.0.1:23890",
        "--listen-client-http-urls=https://127.0.0.1:20757",
    ]
