"""strongSwan and FRR out of Debian's packages, in a folder of the cache: nothing is installed on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools import cache

LIST = Path(__file__).with_name("packages.txt")


class Unavailable(Exception):
    """Why the programs can't be had here."""


def tree() -> Path:
    """A folder with ``usr``, ``etc`` and so on of the packages, and of what they need and this machine lacks."""
    names = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    if os.geteuid():
        raise Unavailable("only root makes machines of namespaces")
    try:
        installed = Path("/var/lib/dpkg/status").read_bytes()
    except FileNotFoundError:
        raise Unavailable("this is no Debian") from None
    place = cache.root() / "debian" / cache.digest(*names, installed)[:12]
    with cache.locked(place.with_suffix(".lock")):
        if not place.is_dir():
            _unpack(_missing(names), place)
    return place


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{' '.join(command[:2])}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _missing(names: list[str]) -> list[str]:
    """name=version of every package that an installation would bring."""
    told = _run("apt-get", "install", "--simulate", "--no-install-recommends", "-o", "Debug::NoLocking=1", *names)
    words = [line.split() for line in told.splitlines() if line.startswith("Inst ")]
    # udev would be the machine's own; nothing here needs it.
    return sorted(f"{word[1]}={next(w for w in word if w.startswith('('))[1:]}" for word in words if word[1] != "udev")


def _unpack(wanted: list[str], place: Path) -> None:
    new = place.with_suffix(".new")
    debs = new / "debs"
    shutil.rmtree(new, ignore_errors=True)
    debs.mkdir(parents=True)
    # apt's own user would have to be let in otherwise.
    _run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *wanted, cwd=debs)
    for name in ("usr", "etc", "var"):
        (new / name).mkdir(exist_ok=True)
    for deb in debs.glob("*.deb"):
        _run("dpkg-deb", "-x", str(deb), str(new))
        deb.unlink()
    debs.rmdir()
    for name in ("bin", "lib", "sbin"):  # which are links into usr on a machine
        if (new / name).is_dir():
            shutil.copytree(new / name, new / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(new / name)
    new.rename(place)
