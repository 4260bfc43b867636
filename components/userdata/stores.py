"""How a host reads its store: one small program, `/usr/local/sbin/menagerie-secret`.

Contract of the program: ``menagerie-secret NAME...`` prints one JSON object, name -> text, on standard output. On
failure it prints a line for each reason on standard error. It exits with 69 (sysexits' EX_UNAVAILABLE) if the store
does not answer, or the answer breaks off, and with 1 if the store answers and refuses. Request all names in one run:
each start of Python costs a host 0.04 s of CPU time.

``menagerie-secret --put NAME`` stores standard input as the value of NAME, and fails in the same ways.
"""

from __future__ import annotations

from typing import Protocol


class SecretStoreAdapter(Protocol):
    """A kind of store for secrets and payloads, as hosts see it."""

    def script(self) -> str:
        """Return the text of `/usr/local/sbin/menagerie-secret`; the module's docstring has its contract."""
        ...
