"""Renders the files that machines download during installation, and the DHCP configuration.

Nothing in the tree is secret: everything that boots in a rack can read all of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.reading import UnreadableError, read_bytes
from cluster.writing import ForeignFileError, replace
from operations.provisioning.machines import SiteMachine

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    environment.filters["quote"] = lambda value: shlex.quote(str(value))
    return environment


def _text(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


def tree(machines: Sequence[SiteMachine], wipe_until: Mapping[str, int] | None = None) -> dict[str, str]:
    """Return path -> text of every file in one site's tree.

    wipe_until: machine -> Unix time until which its installer may overwrite a used disk. The consent expires, so that a
    machine that boots from the network by mistake later is not wiped again.
    """
    consent = wipe_until or {}
    settings = machines[0].settings
    files = {
        "boot.ipxe": _text("boot.ipxe.j2", server=settings.server),
        "menagerie.ipxe": _text("menagerie.ipxe.j2", server=settings.server),
        "dnsmasq.conf": dnsmasq(machines),
    }
    for machine in machines:
        folder = f"machines/{machine.hyphened}"
        values = {"machine": machine, "settings": machine.settings, "base": f"{machine.settings.server}/{folder}"}
        mirror = urlsplit(machine.settings.mirror)
        files[f"{folder}.ipxe"] = _text("machine.ipxe.j2", **values)
        files[f"{folder}/preseed.cfg"] = _text("preseed.cfg.j2", **values, mirror=mirror)
        files[f"{folder}/disk.sh"] = _text("disk.sh.j2", **values, wipe_until=consent.get(machine.name, 0))
        files[f"{folder}/late.sh"] = _text("late.sh.j2", **values)
    return files


def dnsmasq(machines: Sequence[SiteMachine]) -> str:
    """Return a part of dnsmasq's configuration, which serves only these machines in their racks."""
    racks: dict[tuple[str, IPv4Network], SiteMachine] = {
        (machine.rack, machine.network): machine for machine in reversed(machines)
    }
    ordered = [racks[key] for key in sorted(racks, key=lambda key: key[1])]
    return _text("dnsmasq.conf.j2", racks=ordered, machines=machines, settings=machines[0].settings)


def write(files: Mapping[str, str], folder: Path, *, dry_run: bool = False) -> int:
    """Write the files that differ, unless it is a dry run. Return how many files differ.

    Removes the files of machines that are gone: they would still boot. Other files in the folder stay: the installer's
    kernel and iPXE are put there by hand. Raises ForeignFileError, and changes nothing, if files of these names exist in a
    folder that is not such a tree.
    """
    existing = [path for path in sorted(folder.glob("machines/**/*")) if path.is_file()]
    _refuse_foreign(folder, [*existing, *(folder / name for name in files if (folder / name).exists())])
    stale = [path for path in existing if str(path.relative_to(folder)) not in files]
    new = {
        path: text.encode()
        for name, text in files.items()
        if not (path := folder / name).is_file() or path.read_bytes() != text.encode()
    }
    if not dry_run:
        for path in stale:
            path.unlink()
        for path, text_ in new.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, text_)
    return len(stale) + len(new)


def _refuse_foreign(folder: Path, touched: Sequence[Path]) -> None:
    head = (TEMPLATES / "boot.ipxe.j2").read_bytes().partition(b"{{")[0]
    try:
        is_ours = read_bytes(folder / "boot.ipxe").startswith(head)
    except UnreadableError:
        is_ours = False
    if touched and not is_ours:
        raise ForeignFileError(touched[0], "a file from machines render")
