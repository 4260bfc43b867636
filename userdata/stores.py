"""How a host reads its own secrets: one small program, `/usr/local/sbin/menagerie-secret`.

Contract of the program: ``menagerie-secret NAME`` prints the secret on standard output. On failure
it prints one line with the reason on standard error and exits with 69 (sysexits' EX_UNAVAILABLE)
where the store does not answer, and with 1 where the store answers and refuses.
"""

from __future__ import annotations

from typing import Protocol


class SecretStoreAdapter(Protocol):
    """One kind of secret store, as hosts see it."""

    def script(self) -> str:
        """Text of `/usr/local/sbin/menagerie-secret`; see the module for its contract."""
        ...
