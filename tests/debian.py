"""Unpack programs from Debian packages into the cache. Nothing is installed on this machine, so no service starts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cluster.locks import locked
from tools import cache

_OPTIONS = ("-q", "-o", "Debug::NoLocking=1", "-o", "Acquire::Retries=3")


class Unavailable(Exception):
    """The programs are not available here; the text says why."""


def tree(names: Sequence[str]) -> Path:
    """Return a folder with ``usr``, ``etc`` and so on of the packages and of their dependencies that this machine lacks."""
    try:
        installed = Path("/var/lib/dpkg/status").read_bytes()
    except FileNotFoundError:
        raise Unavailable("this machine does not run Debian") from None
    place = cache.root() / "debian" / cache.digest(*names, installed)[:12]
    with locked(place.with_suffix(".lock")):
        if not place.is_dir():
            _make(names, place)
    return place


def sshd(folder: Path) -> Path:
    """Return a script that runs OpenSSH's server: the machine's own, or one from its package, copied to `folder`.

    It is copied because only the cache's owner can read the cache.
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
        script.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} {_parts(usr, program.parent)} "$@"\n')
    script.chmod(0o755)
    return script


def _parts(usr: Path, folder: Path) -> str:
    """Return the options that name the server's own programs, which it runs since OpenSSH 9.8; copies them to `folder`."""
    options = []
    for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")):
        if (own := usr / "lib" / "openssh" / name).is_file():
            shutil.copy(own, folder)
            options.append(f"-o {option}={folder / name}")
    return " ".join(options)


def _make(names: Sequence[str], place: Path) -> None:
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    (new / "debs").mkdir(parents=True)
    try:
        packages, lists = _missing(names), ()
    except Unavailable:  # the machine's package lists are old, or were removed
        lists = _fetch_lists(new / "apt")
        packages = _missing(names, lists)
    # Otherwise apt's own user would need access to the folder.
    _run("apt-get", *_OPTIONS, *lists, "-o", "APT::Sandbox::User=root", "download", *packages, cwd=new / "debs")
    shutil.rmtree(new / "apt", ignore_errors=True)
    _unpack(new)
    new.rename(place)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{shlex.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _fetch_lists(folder: Path) -> tuple[str, ...]:
    """Fetch the package lists of this machine's archives into a separate folder. Return the options that use them."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = ("-o", f"Dir::State::lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}")
    _run("apt-get", *_OPTIONS, *options, "-o", "APT::Sandbox::User=root", "update")
    return options


def _missing(names: Sequence[str], lists: Sequence[str] = ()) -> list[str]:
    """Return name=version of every package that an installation would add."""
    output = _run("apt-get", *_OPTIONS, *lists, "install", "--simulate", "--no-install-recommends", *names)
    lines = [line.split() for line in output.splitlines() if line.startswith("Inst ")]
    # udev belongs to the machine; no test needs it.
    return sorted(
        f"{fields[1]}={next(field for field in fields if field.startswith('('))[1:]}"
        for fields in lines
        if fields[1] != "udev"
    )


def _unpack(new: Path) -> None:
    for name in ("usr", "etc", "var"):
        (new / name).mkdir(exist_ok=True)
    for deb in (new / "debs").glob("*.deb"):
        _run("dpkg-deb", "-x", str(deb), str(new))
        deb.unlink()
    (new / "debs").rmdir()
    for name in ("bin", "lib", "sbin"):  # on an installed machine these are links into usr
        if (new / name).is_dir():
            shutil.copytree(new / name, new / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(new / name)
