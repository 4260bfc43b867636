"""Runs programs on hosts, by host name. `Ssh` is the real executor; tests have others."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from cluster.sites import SiteSsh
from cluster.spec import Cluster

UNREACHABLE = 255
"""ssh(1): exit code of ssh's own failures."""
_OPERATORS = "~/.ssh/known_hosts"


@dataclass(frozen=True)
class Done:
    """A program that has ended. code: its exit code. text: its output, errors included."""

    code: int
    text: str

    @property
    def reason(self) -> str:
        """Why it failed: the last line of its output."""
        output = self.text.strip().splitlines()
        return output[-1] if output else f"exit code {self.code}"


class Running(Protocol):
    """A running program."""

    def wait(self, timeout_s: float) -> Done:
        """Wait for its end. Returns code 124, as timeout(1) does, if it does not end in time."""

    def stop(self) -> None:
        """Stop waiting. The program on the host ends by its own timeout."""


class Executor(Protocol):
    """Starts programs on hosts, by host name."""

    def start(self, host: str, words: Sequence[str]) -> Running: ...


class _Process:
    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def wait(self, timeout_s: float) -> Done:
        try:
            output, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            return Done(124, f"still running after {timeout_s:.0f} s")
        return Done(self._process.returncode, output.decode(errors="replace"))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class Ssh:
    """Uses the operator's ssh with each site's settings from the spec. Keeps one connection per host for a block.

    Host keys must be known already, as for a run of Ansible. known_hosts: text of a known_hosts file that is read before
    the operator's own; a lab's is read alone. key: file of a private key to use instead of the spec's.
    """

    def __init__(self, cluster: Cluster, known_hosts: str = "", key: Path | None = None) -> None:
        self._logins = dict(_logins(cluster, key))
        # Short: the path of a socket can have at most 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="menagerie-ssh-")
        self._known = Path(self._folder.name, "known_hosts") if known_hosts else None
        self._own = "" if cluster.is_lab else f" {_OPERATORS}"
        if self._known:
            self._known.write_text(known_hosts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for control in set(Path(self._folder.name).iterdir()) - {self._known}:
            command = ["ssh", "-O", "exit", "-o", f"ControlPath={control}", "any"]
            subprocess.run(command, check=False, capture_output=True)
        self._folder.cleanup()

    def start(self, host: str, words: Sequence[str]) -> Running:
        return _Process(self.command(host, words))

    def command(self, host: str, words: Sequence[str]) -> tuple[str, ...]:
        """Return the command line to run on this machine."""
        login = self._logins[host]
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": "10",
            "ServerAliveInterval": "15",
            "ControlMaster": "auto",
            "ControlPersist": "60",
            # In quotes: ssh ends a path at a blank.
            "ControlPath": f'"{self._folder.name}/%C"',
            **({"IdentityFile": f'"{login["key"]}"'} if login["key"] else {}),
            **({"UserKnownHostsFile": f'"{self._known}"{self._own}'} if self._known else {}),
        }
        become = () if login["user"] == "root" else ("sudo", "-n")
        flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        remote = shlex.join((*become, *words))
        return ("ssh", *flags, "-p", login["port"], "-l", login["user"], login["address"], "--", remote)


def _logins(cluster: Cluster, key: Path | None) -> Mapping[str, dict[str, str]]:
    """Return logins of workers by name, and of edge routers as ``<site>-<router>``."""
    logins = {}
    for pool, host in cluster.host_list():
        logins[host.name] = _login(str(host.address), cluster.spec.sites[cluster.spec.pools[pool].site or ""].ssh, key)
    for site, settings in cluster.spec.sites.items():
        for name, router in settings.vpn.routers.items() if settings.vpn else ():
            if router.host:
                logins[f"{site}-{name}"] = _login(str(router.host), settings.ssh, key)
    return logins


def _login(address: str, ssh: SiteSsh, key: Path | None) -> dict[str, str]:
    return {"address": address, "user": ssh.user, "port": str(ssh.port), "key": str(key or ssh.private_key or "")}
