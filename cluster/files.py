"""What a host needs: files, secrets by reference, downloads by URL and checksum.

The pure packages (`network`, `etcd`, `control_plane`) return these; `userdata` turns them into
cloud-init for cloud hosts and `inventories` into files for Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.artefacts import Artefact

JOIN_TOKEN = "join-token"
"""Name in the cluster's store of the token with which workers in the region join. API servers renew it."""
JOIN_TOKEN_FOR = "menagerie/join-token-for"
"""Label of a bootstrap token's Secret: the host that it is for, or `IN_REGION`. For people and audits; the token's groups
decide what it can do."""
IN_REGION = "menagerie-region"
PAYLOAD_DIGEST = "payload.sha256"
"""Name, among the secrets of an etcd host, of its payload's SHA-256. While it runs, the host accepts no other payload."""
STORAGE_CLASSES = "storage-classes.json"
"""Name, among the secrets of API servers, of the storage classes, which contain outputs of the stack."""


@dataclass(frozen=True, order=True)
class HostFile:
    """A text file on a host. mode: its permissions; owner: user:group."""

    path: str
    text: str
    mode: int = 0o644
    owner: str = "root:root"


@dataclass(frozen=True, order=True)
class SecretRef:
    """A secret that the host fetches at boot with its own identity and writes to `path`."""

    name: str
    """Name in the cluster's secret store, for example etcd-main-ca-key."""
    path: str
    mode: int = 0o600
    owner: str = "root:root"


@dataclass(frozen=True, order=True)
class Download:
    """An artefact fetched at boot.

    members: path in the archive -> path on the host. Empty for a plain binary, which is written to `path`.
    """

    artefact: Artefact
    path: str = ""
    members: tuple[tuple[str, str], ...] = ()
    mode: int = 0o755
    is_late: bool = False
    """Whether it is fetched after the units have started, because none of them needs it to start."""


@dataclass(frozen=True, order=True)
class Disk:
    """A disk of the host, mounted at `mount` before any unit starts. A blank disk gets an ext4 file system first.

    ext4, because Debian's cloud images have no other mkfs (debian-cloud-images), and because mkfs.ext4 writes the label
    last: when it is killed, the disk stays blank (25 of 25 tries).
    """

    mount: str
    label: str
    """Label of the file system, at most 16 characters. The disk is found by it at the next boot."""
    devices: tuple[str, ...]
    """Patterns of links to the disk, such as /dev/disk/by-id/google-etcd-main. A mounted disk never matches."""
    options: tuple[str, ...] = ("noatime",)
    size: int = 0
    """In bytes. Smaller disks are skipped; of several blank ones the smallest is used, then the first."""


@dataclass(frozen=True, order=True)
class Consumer:
    """A program whose files may change while it runs: secrets from the store, or certificates made from them.

    It is restarted when one of `paths` is newer than its start. With `loaded` it isn't: it reloads them itself.
    """

    unit: str
    paths: tuple[str, ...]
    loaded: tuple[str, ...] = ()
    """Command that exits with 0 when the program has reloaded its files."""
    lock: tuple[str, ...] = ()
    """Command that runs its arguments while no other host of the cluster does."""
    before: tuple[str, ...] = ()
    """Command that must succeed before the restart: it checks that the others can do without this one."""
    ready: tuple[str, ...] = ()
    """Command that succeeds when the program serves again."""
    settle_s: int = 0
    """How many seconds the lock is held after that."""


@dataclass(frozen=True, order=True)
class Program:
    """A unit that is restarted for a new payload if one of `paths`, or the unit's file, is newer than its start."""

    unit: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Refresh:
    """How a running host takes over changes in its store.

    report: command that takes ``lease grant ...`` and ``put ...``, to let operators read what a host has; empty if
        it reaches no etcd.
    etcd: the etcd that it reaches, which also has the locks of consumers.
    renew: command that regenerates what the host derives from its secrets. It prints a JSON object: path of a
        certificate -> first and last second of its validity.
    programs: what an operator may restart for a new payload while the host runs (`components.userdata.applying`);
        empty if a new payload means a new host.
    """

    consumers: tuple[Consumer, ...]
    report: tuple[str, ...]
    etcd: str = ""
    renew: tuple[str, ...] = ()
    reader: str = ""
    """The identity with which the host reads the store."""
    programs: tuple[Program, ...] = ()


@dataclass(frozen=True)
class HostConfig:
    """Everything that one kind of host gets at boot."""

    disks: tuple[Disk, ...] = ()
    files: tuple[HostFile, ...] = ()
    secrets: tuple[SecretRef, ...] = ()
    downloads: tuple[Download, ...] = ()
    users: tuple[str, ...] = ()
    """System users to create before files are written, without a shell or a home."""
    start: tuple[str, ...] = ()
    """systemd units to enable and start, in this order, when everything is in place."""
    refresh: Refresh | None = None
    packages: tuple[str, ...] = field(default=())
    """Debian packages that the host's image must contain. They are checked at boot, not installed."""
