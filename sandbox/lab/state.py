"""What a lab remembers between commands: a folder of small JSON files, and whose lab it is.

Only one lab fits on a machine, since its address ranges are the machine's. Its folder is
``$MENAGERIE_LAB_STATE`` or ``/var/lib/menagerie-lab``, with one folder a lab below it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster import shared
from cluster.project import ROOT
from sandbox.lab import cgroups, disk
from sandbox.lab.errors import ForeignLabError

CHECKOUT = ROOT
_OWNER = "owner.json"


def root() -> Path:
    """The folder of all labs of this machine."""
    return Path(os.environ.get("MENAGERIE_LAB_STATE", "/var/lib/menagerie-lab"))


def lab_id(checkout: Path = CHECKOUT) -> str:
    """Short name of a checkout's lab: six hex digits of its path's hash."""
    return hashlib.sha256(str(checkout).encode()).hexdigest()[:6]


def folder(*parts: str, lab: str | None = None) -> Path:
    """A path in the lab's own folder; nothing is made."""
    return root().joinpath(lab or lab_id(), *parts)


def space() -> AbstractContextManager[None]:
    """For what writes into the folder of all labs: LabError when its disk is full."""
    return disk.space(root(), "Hosts' disks and volumes are in it; `make lab-down` removes them.")


def write(path: Path, content: Any, mode: int = 0o644) -> None:
    """Replace a JSON file in one step, its folders made first."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n", mode)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a text file in one step, its folders made first. It never has a wider mode."""
    with space(), disk.whole(path) as fresh:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)


def read(path: Path) -> Any:
    """Content of a JSON file, None when there is none or it is cut short."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


@contextmanager
def locked() -> Iterator[None]:
    """Hold the machine's lab lock; the kernel drops it when the holder dies."""
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(root() / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Owner:
    """Whose lab it is. boot: the kernel's boot id when it was made."""

    lab: str
    checkout: str
    cluster: str
    boot: str


def claim(cluster: str) -> Owner:
    """Write down that this checkout's lab is on the machine."""
    owner = Owner(lab_id(), str(CHECKOUT), cluster, boot_id())
    write(folder(_OWNER), asdict(owner))
    return owner


def owner(lab: str) -> Owner | None:
    """Whose lab it is, None when that was lost. NewerDataError."""
    content = read(folder(_OWNER, lab=lab))
    if not content:
        return None
    shared.check(f"{folder(_OWNER, lab=lab)}", content.get(shared.KEY))
    return shared.known(Owner, content)


def boot_id() -> str:
    """Changes with every start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_live(lab: str) -> bool:
    """Whether any process of the lab runs."""
    return bool(cgroups.members(f"{cgroups.ROOT}/{lab}"))


def is_orphan(lab: str) -> bool:
    """Whether the lab's checkout is known and gone: nobody else could bring it down."""
    found = owner(lab)
    return found is not None and not Path(found.checkout).is_dir()


def refuse_foreign() -> None:
    """Raise ForeignLabError when a live lab of another checkout is here, unless it is an orphan."""
    for lab in cgroups.groups():
        if lab != lab_id() and is_live(lab) and not is_orphan(lab):
            found = owner(lab)
            whose = f"of the checkout {found.checkout}" if found else f"with the id {lab}"
            raise ForeignLabError(
                f"a lab {whose} is running on this machine, and one machine holds one lab; "
                "run `make lab-down` there first"
            )
