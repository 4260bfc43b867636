"""The host's systemd, and programs that run as etcd's user."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

DROP_INS = Path("/run/systemd/system")
STOP_S = 90
"""Longer than TimeoutStopSec of etcd's units."""
_QUOTED = 600


class Failure(Exception):
    """An action failed; the text is for the operator."""


class Systemd:
    """What the agent needs of systemd. All methods raise Failure with systemctl's output."""

    def is_active(self, unit: str) -> bool:
        """Return whether the unit runs, starts or stops."""
        done = subprocess.run(["systemctl", "is-active", unit], stdout=subprocess.PIPE, check=False)
        return done.stdout.decode().strip() in ("active", "activating", "reloading", "deactivating")

    def start(self, unit: str) -> None:
        """Start the unit without waiting: a member reports that it runs only after it has found its peers."""
        subprocess.run(["systemctl", "reset-failed", unit], stderr=subprocess.DEVNULL, check=False)
        self._ask("start", "--no-block", unit)

    def stop(self, unit: str) -> None:
        """Stop the unit, and wait until it has stopped."""
        self._ask("stop", unit, timeout_s=STOP_S)

    def run(self, unit: str, timeout_s: float) -> None:
        """Start a oneshot unit and wait until it is done."""
        self._ask("start", unit, timeout_s=timeout_s)

    def said(self, unit: str) -> list[str]:
        """Return the last 100 lines of the unit's newest run in the journal."""
        run = self._ask("show", "--value", "--property=InvocationID", unit).strip()
        words = ["journalctl", "--lines=100", "--output=cat", "--no-pager", f"_SYSTEMD_INVOCATION_ID={run}"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return done.stdout.decode(errors="replace").splitlines()

    def give(self, unit: str, words: str) -> None:
        """Add words to the unit's command line until the host reboots; "" removes them. See etcd.service.j2."""
        path = DROP_INS / (unit + ".d") / "menagerie-join.conf"
        if words:
            path.parent.mkdir(exist_ok=True)
            path.write_text('[Service]\nEnvironment="MENAGERIE_JOIN={}"\n'.format(words.replace("%", "%%")))
        elif path.exists():
            path.unlink()
        else:
            return
        self._ask("daemon-reload")

    def _ask(self, *words: str, timeout_s: float = 30) -> str:
        try:
            done = subprocess.run(
                ["systemctl", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            raise Failure("systemctl {}: not done within {:.0f} s".format(" ".join(words), timeout_s)) from None
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            raise Failure("systemctl {}: {}".format(" ".join(words), said.strip()[-_QUOTED:]))
        return said


def run_as(user: str, words: list[str], timeout_s: float) -> bytes:
    """Return standard output of a program run as `user`, with no further rights. Failure has its last output."""
    try:
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
            timeout=timeout_s,
            **as_user(user),
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"{Path(words[0]).name}: not done within {timeout_s:.0f} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-_QUOTED:]
        raise Failure(f"{Path(words[0]).name} failed with {done.returncode}: {said}")
    return bytes(done.stdout)


def own(path: Path, user: str) -> Path:
    """Make `user` the owner of a file or folder."""
    account = pwd.getpwnam(user)
    os.chown(str(path), account.pw_uid, account.pw_gid)
    return path


def as_user(user: str) -> dict[str, Any]:
    """Return arguments of subprocess to run a program as `user`."""
    private: dict[str, Any] = {"env": {"PATH": "/usr/bin:/bin"}, "umask": 0o077}
    if pwd.getpwuid(os.geteuid()).pw_name == user:
        return private
    return {**private, "user": user, "group": user, "extra_groups": []}
