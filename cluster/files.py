"""What a host must be given: files, secrets by reference, downloads by URL and checksum.

The pure packages (`network`, `etcd`, `control_plane`) return these; `userdata` turns them into
cloud-init for cloud hosts and `inventories` into files for Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.artefacts import Artefact

JOIN_TOKEN = "join-token"
"""Name in the cluster's store of the token by which workers in the region join: API servers write it anew."""
JOIN_TOKEN_FOR = "menagerie/join-token-for"
"""Label of a bootstrap token's Secret: the host that it is for, or `IN_REGION`. For people and audits; its groups decide."""
IN_REGION = "menagerie-region"
PAYLOAD_DIGEST = "payload.sha256"
"""Name, among the secrets of a host of etcds, of the SHA-256 of what it is to be: it takes no other payload while it runs."""
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
    is_late: bool = False
    """Fetched once the units run, none of which needs it to start."""


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


@dataclass(frozen=True, order=True)
class Consumer:
    """A program that runs with files which may change while it does: what the store holds, or certificates made of that.

    It is restarted when one of `paths` is newer than its start; where `loaded` says something, it reads them again by
    itself and is not restarted.
    """

    unit: str
    paths: tuple[str, ...]
    loaded: tuple[str, ...] = ()
    """Command that ends with 0 once the program has read them again."""
    lock: tuple[str, ...] = ()
    """Command that runs the words after it while no other host of the cluster does so."""
    before: tuple[str, ...] = ()
    """Command without whose success it is not restarted: the others can do without this one."""
    ready: tuple[str, ...] = ()
    """Command that succeeds once the program serves again."""
    settle_s: int = 0
    """How long the lock is kept after that."""


@dataclass(frozen=True, order=True)
class Program:
    """What a unit runs: it is restarted for another payload when one of `paths`, or its own file, is newer than its start."""

    unit: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Refresh:
    """How a host takes up what its store holds anew, without a boot.

    report: command to which ``lease grant ...`` and ``put ...`` are added, so that operators can read what a host has; none
    where it reaches no etcd.
    etcd: the name of the one that it reaches, which also has the locks of consumers.
    renew: command that remakes what the host makes out of its secrets; it prints a JSON object, path of a certificate ->
    first and last second of its life.
    programs: what an operator may have restarted for another payload while the host runs (`components.userdata.applying`); none where
    another payload is another host.
    """

    consumers: tuple[Consumer, ...]
    report: tuple[str, ...]
    etcd: str = ""
    renew: tuple[str, ...] = ()
    reader: str = ""
    """As whom the host reads the store."""
    programs: tuple[Program, ...] = ()


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
    refresh: Refresh | None = None
    packages: tuple[str, ...] = field(default=())
    """Debian packages that the host's image must hold; checked, not installed, at boot."""
