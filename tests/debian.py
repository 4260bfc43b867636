"""Programs out of Debian's packages, in a folder of the cache: nothing is installed on this machine, so nothing starts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools import cache

_OPTIONS = ("-q", "-o", "Debug::NoLocking=1", "-o", "Acquire::Retries=3")


class Unavailable(Exception):
    """Why the programs can't be had here."""


def tree(names: Sequence[str]) -> Path:
    """A folder with ``usr``, ``etc`` and so on of the packages, and of what they need and this machine lacks."""
    try:
        installed = Path("/var/lib/dpkg/status").read_bytes()
    except FileNotFoundError:
        raise Unavailable("this is no Debian") from None
    place = cache.root() / "debian" / cache.digest(*names, installed)[:12]
    with cache.locked(place.with_suffix(".lock")):
        if not place.is_dir():
            _make(names, place)
    return place


def sshd(folder: Path) -> Path:
    """A script that runs OpenSSH's server: the machine's own, else one out of its package, copied to `folder`.

    A copy, for nobody but the cache's owner may read the cache.
    """
    script = folder / "sshd"
    if own := shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"):
        script.write_text(f'#!/bin/sh\nexec {own} "$@"\n')
    else:
        usr = tree(["openssh-server"]) / "usr"
        program, libraries = folder / "openssh" / "sshd", folder / "openssh" / "lib"
        libraries.mkdir(parents=True)
        shutil.copy(usr / "sbin" / "sshd", program)
        for library in (usr / "lib").glob("*-linux-gnu/*.so.*"):
            shutil.copy(library, libraries)
        script.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} "$@"\n')
    script.chmod(0o755)
    return script


def _make(names: Sequence[str], place: Path) -> None:
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    (new / "debs").mkdir(parents=True)
    try:
        wanted, lists = _missing(names), ()
    except Unavailable:  # a machine whose lists of packages are old, or were removed
        lists = _fetch_lists(new / "apt")
        wanted = _missing(names, lists)
    # apt's own user would have to be let in otherwise.
    _run("apt-get", *_OPTIONS, *lists, "-o", "APT::Sandbox::User=root", "download", *wanted, cwd=new / "debs")
    shutil.rmtree(new / "apt", ignore_errors=True)
    _unpack(new)
    new.rename(place)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{shlex.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _fetch_lists(folder: Path) -> tuple[str, ...]:
    """Lists of the archives that this machine installs from, in a folder of their own; the options that use them."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = ("-o", f"Dir::State::lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}")
    _run("apt-get", *_OPTIONS, *options, "-o", "APT::Sandbox::User=root", "update")
    return options


def _missing(names: Sequence[str], lists: Sequence[str] = ()) -> list[str]:
    """name=version of every package that an installation would bring."""
    told = _run("apt-get", *_OPTIONS, *lists, "install", "--simulate", "--no-install-recommends", *names)
    words = [line.split() for line in told.splitlines() if line.startswith("Inst ")]
    # udev would be the machine's own; nothing here needs it.
    return sorted(f"{word[1]}={next(w for w in word if w.startswith('('))[1:]}" for word in words if word[1] != "udev")


def _unpack(new: Path) -> None:
    for name in ("usr", "etc", "var"):
        (new / name).mkdir(exist_ok=True)
    for deb in (new / "debs").glob("*.deb"):
        _run("dpkg-deb", "-x", str(deb), str(new))
        deb.unlink()
    (new / "debs").rmdir()
    for name in ("bin", "lib", "sbin"):  # which are links into usr on a machine
        if (new / name).is_dir():
            shutil.copytree(new / name, new / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(new / name)
