"""Access to an account of a cloud, through the cloud's own libraries: logins, and calls that only read.

Shared by the autoscaler's groups of machines and by `doctor`. Time-outs are read when a client is made.
"""

from __future__ import annotations

from cluster.errors import FailedError

CONNECT_S, READ_S = 5, 15
"""Time-outs of one request."""
TRIES = 3
"""Attempts of one idempotent request, with growing pauses between them."""


class LoginError(FailedError):
    """There are no credentials, or the cloud does not accept them. The text says how to get some."""

    code = "no-login"


class CallError(FailedError):
    """A call to a cloud gave no answer that can be used. refused: the cloud denied the right to it. missing: there is no such thing."""

    code = "cloud-call"

    def __init__(self, text: str, *, refused: bool = False, missing: bool = False) -> None:
        super().__init__(text)
        self.refused, self.missing = refused, missing


def one_line(why: object, most: int = 400) -> str:
    """Return a text on one line, shortened for an error message."""
    return " ".join(str(why).split())[:most]
