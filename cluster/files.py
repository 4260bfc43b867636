"""What a host must be given: files, secrets by reference, downloads by URL and checksum.

The pure packages (`network`, `etcd`, `control_plane`) return these; `userdata` turns them into
cloud-init for cloud hosts and `inventories` into files for Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.artefacts import Artefact


@dataclass(frozen=True, order=True)
class HostFile:
    """A text file on a host. `mode` is the octal permission; `owner` is user:group."""

    path: str
    text: str
    mode: int = 0o644
    owner: str = "root:root"


@dataclass(frozen=True, order=True)
class SecretRef:
    """A secret that the host fetches at boot by its own identity and writes to `path`."""

    name: str
    """Name in the cluster's secret store, for example etcd-main-ca-key."""
    path: str
    mode: int = 0o600
    owner: str = "root:root"


@dataclass(frozen=True, order=True)
class Download:
    """An artefact fetched at boot. `members` maps a path in the archive to a path on the host;
    empty for a bare binary, which goes to `path`."""

    artefact: Artefact
    path: str = ""
    members: tuple[tuple[str, str], ...] = ()
    mode: int = 0o755


@dataclass(frozen=True)
class HostConfig:
    """All that one kind of host is given at boot."""

    files: tuple[HostFile, ...] = ()
    secrets: tuple[SecretRef, ...] = ()
    downloads: tuple[Download, ...] = ()
    users: tuple[str, ...] = ()
    """System users to create before files are written, without a shell or a home."""
    start: tuple[str, ...] = ()
    """systemd units to enable and start, in this order, once everything is in place."""
    packages: tuple[str, ...] = field(default=())
    """Debian packages that the host's image must hold; checked, not installed, at boot."""
