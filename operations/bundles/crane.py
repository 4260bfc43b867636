"""crane, the client of registries that this checkout pins. Logins come from Docker's configuration file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from cluster.errors import FailedError
from tools import build

_ABSENT = ("MANIFEST_UNKNOWN", "NAME_UNKNOWN", "404 Not Found")
"""What a registry says of an image that it doesn't have (OCI Distribution Specification 1.1, "Error Codes")."""


class CraneError(FailedError):
    """crane failed; the text is the end of its output. absent: because the registry has no such image."""

    code = "mirror"

    def __init__(self, output: str) -> None:
        super().__init__("\n".join(output.strip().splitlines()[-3:])[-600:])
        self.absent = any(sign in output for sign in _ABSENT)


class Crane:
    """The program; it is built or taken from the cache when it is first used."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def __call__(self, *words: str) -> str:
        """Return the command's output. Raises CraneError."""
        program = build.ensure(["crane"], lambda event: self._say(str(event)) if event.state != "cached" else None)
        done = subprocess.run([str(program["crane"]), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CraneError(done.stderr or done.stdout)
        return done.stdout.strip()
