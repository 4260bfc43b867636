"""Running programs on hosts by their names. `Ssh` is the real one; tests have others."""

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
"""ssh(1): its own failure, not the program's."""


@dataclass(frozen=True)
class Done:
    """code: the program's exit code. text: all that it said, errors too."""

    code: int
    text: str

    @property
    def reason(self) -> str:
        """Why it failed, in its own last words."""
        said = self.text.strip().splitlines()
        return said[-1] if said else f"exit code {self.code}"


class Running(Protocol):
    """A program that runs."""

    def wait(self, timeout_s: float) -> Done:
        """Its end; code 124 where it does not end in time, as timeout(1) has it."""

    def stop(self) -> None:
        """Let go of it. What runs on the host ends by its own timeout."""


class Executor(Protocol):
    """Starts programs on hosts, by the hosts' names."""

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
            return Done(124, f"no end after {timeout_s:.0f} s")
        return Done(self._process.returncode, output.decode(errors="replace"))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class Ssh:
    """Over the operator's own ssh, as the spec says for each site: one connection a host, kept for the length of a block.

    Keys of hosts must be known already, as for a run of Ansible. known_hosts: text of a file with them; the operator's
    own without one. key: file of a private key, in place of the spec's.
    """

    def __init__(self, cluster: Cluster, known_hosts: str = "", key: Path | None = None) -> None:
        self._logins = dict(_logins(cluster, key))
        # Short: a socket's whole path may have 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="menagerie-ssh-")
        self._known = Path(self._folder.name, "known_hosts") if known_hosts else None
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
        """The command line on this machine."""
        login = self._logins[host]
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": "10",
            "ServerAliveInterval": "15",
            "ControlMaster": "auto",
            "ControlPersist": "60",
            # In quotes: ssh takes blanks for the end of a path.
            "ControlPath": f'"{self._folder.name}/%C"',
            **({"IdentityFile": f'"{login["key"]}"'} if login["key"] else {}),
            **({"UserKnownHostsFile": f'"{self._known}"'} if self._known else {}),
        }
        become = () if login["user"] == "root" else ("sudo", "-n")
        given = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        remote = shlex.join((*become, *words))
        return ("ssh", *given, "-p", login["port"], "-l", login["user"], login["address"], "--", remote)


def _logins(cluster: Cluster, key: Path | None) -> Mapping[str, dict[str, str]]:
    """Of workers by their names, of edge routers as ``<site>-<router>``."""
    found = {}
    for pool, host in cluster.host_list():
        found[host.name] = _login(str(host.address), cluster.spec.sites[cluster.spec.pools[pool].site or ""].ssh, key)
    for site, settings in cluster.spec.sites.items():
        for name, router in settings.vpn.routers.items() if settings.vpn else ():
            if router.host:
                found[f"{site}-{name}"] = _login(str(router.host), settings.ssh, key)
    return found


def _login(address: str, ssh: SiteSsh, key: Path | None) -> dict[str, str]:
    return {"address": address, "user": ssh.user, "port": str(ssh.port), "key": str(key or ssh.private_key or "")}
