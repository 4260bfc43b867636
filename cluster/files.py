"""What a host must be given: files, secrets by reference, downloads by URL and checksum.

The pure packages (`network`, `etcd`, `control_plane`) return these; `userdata` turns them into
cloud-init for cloud hosts and `inventories` into files for Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.artefacts import Artefact

JOIN_TOKEN = "join-token"
"""Name in the cluster's store of the token by which workers in the region join: API servers write it anew."""
STORAGE_CLASSES = "storage-classes.json"
"""Name, among the secrets of API servers, of the classes of volumes, which hold facts that only the stack knows."""


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


@dataclass(frozen=True, order=True)
class Disk:
    """A disk of the host, mounted at `mount` before any unit starts. A blank one is given an ext4 file system first.

    ext4: Debian's images for clouds have no other mkfs (debian-cloud-images), and mkfs.ext4 writes the label last, so
    one that was killed leaves a blank disk (25 of 25 that were tried).
    """

    mount: str
    label: str
    """Of the file system, at most 16 characters: how the disk is found again."""
    devices: tuple[str, ...]
    """Patterns of links to it, /dev/disk/by-id/google-etcd-main. What is mounted already is never meant."""
    options: tuple[str, ...] = ("noatime",)
    size: int = 0
    """In bytes. Smaller disks are passed over; of several blank ones the smallest is taken, then the first."""


@dataclass(frozen=True)
class HostConfig:
    """All that one kind of host is given at boot."""

    disks: tuple[Disk, ...] = ()
    files: tuple[HostFile, ...] = ()
    secrets: tuple[SecretRef, ...] = ()
    downloads: tuple[Download, ...] = ()
    users: tuple[str, ...] = ()
    """System users to create before files are written, without a shell or a home."""
    start: tuple[str, ...] = ()
    """systemd units to enable and start, in this order, once everything is in place."""
    packages: tuple[str, ...] = field(default=())
    """Debian packages that the host's image must hold; checked, not installed, at boot."""
