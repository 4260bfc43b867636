"""The root file system of the lab's hosts: Debian by debootstrap, once, kept in the cache.

Keyed by the content of its recipe: this file and everything in ``sandbox/lab/image``.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from cluster.locks import locked
from sandbox.lab import disk, shell
from sandbox.lab.errors import LabError
from tools import apt, cache

_IMAGE = Path(__file__).parent / "image"
_LISTS = ("packages.txt", "masked-units.txt", "disabled-units.txt")
_NOT_NEEDED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
)


def key() -> str:
    """Changes when the recipe does."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + apt.SUITE.encode())
    for file in sorted(path for path in _IMAGE.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(_IMAGE)} {file.stat().st_mode & 0o111}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def ensure(say: Callable[[str], None] = lambda _: None) -> Path:
    """Build the root file system if the cache has none; returns its folder. About 50 s and 400 MB.

    A build that fails leaves nothing but its log and downloaded packages, which the next one uses.
    say: told what is being waited for. Raises LabError with the end of debootstrap's log, and OSError
    when the cache cannot be written.
    """
    folder = cache.root() / "rootfs"
    target = folder / key()
    if target.is_dir():
        return target
    with locked(
        folder / ".lock", busy=lambda: say("waiting for another process that builds the hosts' root file system")
    ):
        if not target.is_dir():
            _prune(folder)
            with disk.whole(target) as fresh:
                _build(fresh, folder / "packages", say)
    return target


def read_list(file: Path) -> tuple[str, ...]:
    """Lines of a list file without comments and empty lines."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def mirror(sources: Sequence[apt.Source]) -> str:
    """The archive that this machine itself installs from. LabError where apt knows none of Debian's."""
    if not sources:
        raise LabError(
            f"this machine's apt sources have no archive of Debian, and the lab's hosts are made of {apt.RELEASE}; "
            "add one to /etc/apt/sources.list.d and run `apt-get update`"
        )
    return sources[0].uri


def _build(root: Path, packages: Path, say: Callable[[str], None]) -> None:
    packages.mkdir(parents=True, exist_ok=True)
    say("unpacking Debian for the hosts")
    _debootstrap(root, packages)
    _install_files(root)
    for unit in read_list(_IMAGE / "masked-units.txt"):
        link = root / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    disabled = read_list(_IMAGE / "disabled-units.txt")
    shell.run("systemctl", f"--root={root}", "disable", *disabled, timeout=120)
    _finish(root)


def _debootstrap(root: Path, packages: Path) -> None:
    include = ",".join(read_list(_IMAGE / "packages.txt"))
    argv = ["debootstrap", "--variant=minbase", f"--keyring={apt.KEYRING}", f"--cache-dir={packages}"]
    argv += [f"--include={include}", apt.SUITE, str(root), mirror(apt.of_release(shell.run(*apt.INDEXES)))]
    log = root.with_suffix(".log")
    with log.open("w") as output:
        result = subprocess.run(argv, stdout=output, stderr=output, env=_environment(), check=False)
    if result.returncode:
        inner = root / "debootstrap/debootstrap.log"
        said = log.read_text() + (inner.read_text(errors="replace") if inner.exists() else "")
        if os.strerror(errno.ENOSPC) in said:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))
        raise LabError("debootstrap failed; its log ends with:\n" + "\n".join(said.splitlines()[-12:]))
    log.unlink()


def _environment() -> dict[str, str]:
    # A whole new environment: PYTHONDONTWRITEBYTECODE, for one, would leave cloud-init uncompiled.
    passed = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    given = {name: os.environ[name] for name in passed if name in os.environ}
    path_ = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return given | {"PATH": path_, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def _install_files(root: Path) -> None:
    for source in sorted(_IMAGE.rglob("*")):
        name = source.relative_to(_IMAGE)
        if not source.is_file() or str(name) in _LISTS:
            continue
        destination = root / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.unlink(missing_ok=True)
        shutil.copyfile(source, destination)
        destination.chmod(0o755 if source.stat().st_mode & 0o111 else 0o644)


def _finish(root: Path) -> None:
    wants = root / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lab-quirks.service").symlink_to("/etc/systemd/system/lab-quirks.service")
    default = root / "etc/systemd/system/default.target"
    default.unlink(missing_ok=True)
    default.symlink_to("/lib/systemd/system/multi-user.target")
    # Each host makes its own identity from these.
    (root / "etc/machine-id").write_text("")
    for file in (root / "etc/ssh").glob("ssh_host_*"):
        file.unlink()
    for name in _NOT_NEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True, exist_ok=True)


def _prune(folder: Path) -> None:
    """Remove root file systems of earlier recipes that no host uses, and builds that were interrupted."""
    in_use = Path("/proc/self/mounts").read_text()
    for entry in folder.iterdir():
        if entry.name != "packages" and entry.is_dir() and f"{entry}," not in in_use:
            # A killed debootstrap leaves /proc and /sys mounted inside.
            disk.remove(entry)
