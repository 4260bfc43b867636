"""A lab's state between commands: a folder of small JSON files, and the lab's owner.

A machine has room for one lab only, because the lab's address ranges are used on the machine itself. Labs are in
``$MENAGERIE_LAB_STATE`` or ``/var/lib/menagerie-lab``, with one folder per lab.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster import locks, shared
from cluster.project import ROOT
from sandbox.lab import cgroups, disk
from sandbox.lab.errors import ForeignLabError

CHECKOUT = ROOT
_OWNER = "owner.json"


def root() -> Path:
    """Return the folder of all labs on this machine."""
    return Path(os.environ.get("MENAGERIE_LAB_STATE", "/var/lib/menagerie-lab"))


def lab_id(checkout: Path = CHECKOUT) -> str:
    """Return the short name of a checkout's lab: six hex digits of its path's hash."""
    return hashlib.sha256(str(checkout).encode()).hexdigest()[:6]


def folder(*parts: str, lab: str | None = None) -> Path:
    """Return a path in the lab's own folder, without creating it."""
    return root().joinpath(lab or lab_id(), *parts)


def space() -> AbstractContextManager[None]:
    """Raise LabError when a block that writes into the folder of all labs fills its disk."""
    return disk.space(root(), "The disks and volumes of hosts are in it; `make lab-down` removes them.")


def write(path: Path, content: Any, mode: int = 0o644) -> None:
    """Replace a JSON file atomically; create its folders first."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n", mode)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a text file atomically; create its folders first. Its mode is never wider, even briefly."""
    with space(), disk.whole(path) as fresh:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)


def read(path: Path) -> Any:
    """Return the content of a JSON file, None when it is missing or truncated."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


@contextmanager
def locked() -> Iterator[None]:
    """Hold the machine's lab lock."""
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    with locks.locked(root() / ".lock", mode=0o600):
        yield


@dataclass(frozen=True)
class Owner:
    """The owner of a lab. boot: the kernel's boot ID when the lab was created."""

    lab: str
    checkout: str
    cluster: str
    boot: str


def claim(cluster: str) -> Owner:
    """Record that this checkout's lab is on the machine."""
    owner = Owner(lab_id(), str(CHECKOUT), cluster, boot_id())
    write(folder(_OWNER), asdict(owner))
    return owner


def owner(lab: str) -> Owner | None:
    """Return the owner of a lab, None when its record is lost. Raises NewerDataError."""
    content = read(folder(_OWNER, lab=lab))
    if not content:
        return None
    shared.check(f"{folder(_OWNER, lab=lab)}", content.get(shared.KEY))
    return shared.from_known_fields(Owner, content)


def boot_id() -> str:
    """Return an ID that changes with every boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_live(lab: str) -> bool:
    """Whether any process of the lab is running."""
    return bool(cgroups.members(f"{cgroups.ROOT}/{lab}"))


def is_orphan(lab: str) -> bool:
    """Whether the lab's checkout is known and gone, so that no checkout can remove the lab."""
    record = owner(lab)
    return record is not None and not Path(record.checkout).is_dir()


def refuse_foreign() -> None:
    """Raise ForeignLabError when another checkout's live lab is on this machine, unless it is an orphan."""
    for lab in cgroups.groups():
        if lab != lab_id() and is_live(lab) and not is_orphan(lab):
            record = owner(lab)
            whose = f"of the checkout {record.checkout}" if record else f"with the id {lab}"
            raise ForeignLabError(
                f"a lab {whose} is running on this machine, and a machine has room for one lab; "
                "run `make lab-down` there first"
            )
