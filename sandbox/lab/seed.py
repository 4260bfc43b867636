"""Write a host's identity, user data or SSH keys to its disk before its first start."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.lab import loops


@dataclass(frozen=True)
class Identity:
    """Who a host is. resolver: address of a name server, "" for none."""

    name: str
    address: str
    resolver: str


def write(root: Path, identity: Identity) -> None:
    """Write the host name, /etc/hosts and the resolver."""
    _put(root, "etc/hostname", f"{identity.name}\n")
    own = f"127.0.0.1 localhost\n{identity.address} {identity.name}\n"
    _put(root, "etc/hosts", own)
    resolver = f"nameserver {identity.resolver}\noptions timeout:1 attempts:1\n" if identity.resolver else ""
    _put(root, "etc/resolv.conf", resolver)


def write_cloud(root: Path, name: str, user_data: str) -> None:
    """Write the seed folder that cloud-init reads, and disable SSH. User data is in gzip, as on Azure's hosts."""
    nocloud = "var/lib/cloud/seed/nocloud"
    _put(root, f"{nocloud}/meta-data", json.dumps({"instance-id": name, "local-hostname": name}) + "\n")
    _put(root, f"{nocloud}/user-data", gzip.compress(user_data.encode(), mtime=0), 0o600)
    for unit in ("ssh.service", "ssh.socket"):
        _mask(root, unit)


def write_onprem(root: Path, authorized_keys: tuple[str, ...], host_key: str) -> None:
    """Write the SSH keys and disable cloud-init.

    host_key: OpenSSH private key; the public half is derived from it.
    """
    _put(root, "etc/cloud/cloud-init.disabled", "")
    _put(root, "root/.ssh/authorized_keys", "".join(f"{line}\n" for line in authorized_keys), 0o600)
    (root / "root/.ssh").chmod(0o700)
    key = root / "etc/ssh/ssh_host_ed25519_key"
    _put(root, "etc/ssh/ssh_host_ed25519_key", host_key.rstrip("\n") + "\n", 0o600)
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], capture_output=True, text=True, check=True).stdout
    _put(root, "etc/ssh/ssh_host_ed25519_key.pub", public)
    _put(root, "etc/ssh/sshd_config.d/60-host-key.conf", "HostKey /etc/ssh/ssh_host_ed25519_key\n")


def write_disks(root: Path, disks: Mapping[str, Path]) -> None:
    """Write the names of a host's disks, for the lab's substitute for udev; no file for a host without disks."""
    if disks:
        _put(root, loops.LIST, "".join(f"{name} {device}\n" for name, device in disks.items()))


def answers_ssh(address: str, port: int = 22, seconds: float = 0.5) -> bool:
    """Whether an SSH server sends its greeting at the address."""
    try:
        with socket.create_connection((address, port), seconds) as connection:
            connection.settimeout(seconds)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _put(root: Path, name: str, content: str | bytes, mode: int = 0o644) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _mask(root: Path, unit: str) -> None:
    link = root / "etc/systemd/system" / unit
    link.unlink(missing_ok=True)
    link.symlink_to("/dev/null")
