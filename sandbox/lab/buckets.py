"""The lab's object storage: an S3 server with one folder per bucket, on the network of the lab's services.

Its key comes from the stack and is kept in a tmpfs that only root can read. The buckets' contents are in the lab's
folder: they outlive the hosts and are removed with the lab. Objects are never locked: object locks can only be tested
in a cloud.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path

from sandbox.lab import mounts, networks, plan, processes, state
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

NAME = "buckets"
_LAUNCH = 'set -a; . "$1"; shift; exec "$@"'


def put(key: Mapping[str, str], lab: LabSpec) -> None:
    """Run the server under this key (access_key_id, secret_access_key), in place of any earlier one."""
    mounts.private_memory(_key_file().parent)
    state.write_text(_key_file(), _environment(key), 0o600)
    ensure(lab)


def ensure(lab: LabSpec) -> None:
    """Start the server if it was ever given a key. The namespace of the lab's services must exist."""
    if not _key_file().exists():
        return
    for bucket in plan.BUCKETS:
        (_data() / bucket).mkdir(mode=0o700, parents=True, exist_ok=True)
    _about().mkdir(mode=0o700, parents=True, exist_ok=True)
    processes.ensure(_daemon(lab), answers)


def read() -> str | None:
    """Return the fingerprint of the key that the server runs under.

    None when the server or a bucket is missing; a lab from an older version may lack a bucket.
    """
    has_buckets = all((_data() / bucket).is_dir() for bucket in plan.BUCKETS)
    if not has_buckets or not _key_file().exists() or not processes.is_running(NAME):
        return None
    return _digest(_key_file().read_text())


def fingerprint(key: Mapping[str, str]) -> str:
    """Return what `read` returns after `put(key)`."""
    return _digest(_environment(key))


def delete() -> None:
    """Stop the server and forget its key. The buckets' contents stay until the lab is removed."""
    processes.stop(NAME)
    _key_file().unlink(missing_ok=True)


def has_key() -> bool:
    """Whether the server has a key and should therefore be running."""
    return _key_file().exists()


def answers() -> bool:
    """Whether the server accepts connections."""
    try:
        with socket.create_connection((str(plan.SERVICES_ADDRESS), plan.BUCKETS_PORT), 1):
            return True
    except OSError:
        return False


def command(lab: LabSpec) -> list[str]:
    """Return the server's command line, without its key."""
    listen = f"--port={plan.SERVICES_ADDRESS}:{plan.BUCKETS_PORT}"
    # Metadata is in separate files, because not every file system has extended attributes.
    return [lab.versitygw, "--quiet", listen, "posix", f"--sidecar={_about()}", str(_data())]


def _daemon(lab: LabSpec) -> Daemon:
    argv = ["sh", "-c", _LAUNCH, "sh", str(_key_file()), *command(lab)]
    # The same namespace as the registry and the mirror.
    return Daemon(NAME, argv, netns=networks.netns(plan.SERVICES), watched=_digest(_key_file().read_text()))


def _environment(key: Mapping[str, str]) -> str:
    return f"ROOT_ACCESS_KEY={key['access_key_id']}\nROOT_SECRET_KEY={key['secret_access_key']}\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _data() -> Path:
    return state.folder("buckets", "data")


def _about() -> Path:
    return state.folder("buckets", "about")


def _key_file() -> Path:
    return state.folder("secrets", "buckets.env")
