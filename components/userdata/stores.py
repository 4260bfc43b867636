"""How a host reads what its store holds for it: one small program, `/usr/local/sbin/menagerie-secret`.

Contract of the program: ``menagerie-secret NAME...`` prints one JSON object, name -> text, on
standard output. On failure it prints a line for each reason on standard error and exits with 69
(sysexits' EX_UNAVAILABLE) where the store does not answer, or not to the end, and with 1 where it
answers and refuses. All names are asked for in one run: each start of Python costs a host 0.04 s
of processor time.

``menagerie-secret --put NAME`` makes standard input the value of NAME, and fails in the same ways.
"""

from __future__ import annotations

from typing import Protocol


class SecretStoreAdapter(Protocol):
    """One kind of store for secrets and payloads, as hosts see it."""

    def script(self) -> str:
        """Text of `/usr/local/sbin/menagerie-secret`; see the module for its contract."""
        ...
