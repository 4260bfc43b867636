"""Shared by programs that set links again: the kernel's events of links, and notifying systemd."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator


def link_events() -> Iterator[None]:
    """Yield once for each burst of link changes from now on (rtnetlink(7), group RTMGRP_LINK)."""
    listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    listener.bind((0, 1))

    def bursts() -> Iterator[None]:
        while True:
            _heard(listener, 0)
            time.sleep(1)
            while _heard(listener, socket.MSG_DONTWAIT):
                pass
            yield None

    return bursts()


def _heard(listener: socket.socket, flags: int) -> bool:
    """Return whether there was a message. Many may be lost (ENOBUFS), which means the same as one."""
    try:
        listener.recv(65536, flags)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno == errno.ENOBUFS
    return True


def tell_systemd(text: str) -> None:
    """Send a notification to systemd (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(text.encode(), "\0" + path[1:] if path.startswith("@") else path)
