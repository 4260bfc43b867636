"""Debian's packages as files of an image: fetched by apt, which verifies them, and unpacked without root.

Nothing of a package is run, so what its scripts would make is missing: users, alternatives, caches.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cluster.errors import FailedError

SUITE = "bookworm"
MERGED = ("bin", "lib", "lib64", "sbin")
"""Folders that are links into /usr."""
_UNUSED = (
    "usr/sbin/",
    "usr/share/man/",
    "usr/share/lintian/",
    "usr/share/locale/",
    "usr/share/bug/",
    "usr/share/applications/",
)
_WAY_OUT = f"the image is made of Debian 12 ({SUITE}): look at the network, and at /etc/apt/sources.list*"


def fetch(names: Sequence[str], home: Path, *, with_needed: bool = False) -> list[Path]:
    """The packages, verified by apt, kept below `home` until there are newer ones. One at a time may do this in a folder.

    with_needed: also all that they depend on. FailedError with what apt said."""
    kept = home / "debian"
    kept.mkdir(parents=True, exist_ok=True)
    apt = _apt(home / "apt")
    run([*apt, "update"], _WAY_OUT)
    wanted = _needed(names, apt, home) if with_needed else names
    with tempfile.TemporaryDirectory() as elsewhere:  # of what lies here already apt says nothing
        listed = run([*apt, "--print-uris", "download", *wanted], _WAY_OUT, cwd=Path(elsewhere))
    sizes = {line.split()[1]: int(line.split()[2]) for line in listed.splitlines()}
    there = {path.name: path for path in kept.iterdir()}
    for name in there.keys() - sizes.keys():
        there[name].unlink()
    # A name has a version, and apt lets no file have it that it has not verified.
    if any(name not in there or there[name].stat().st_size != size for name, size in sizes.items()):
        run([*apt, "download", *wanted], _WAY_OUT, cwd=kept)
    return [kept / name for name in sorted(sizes)]


def unpack(package: Path, root: Path) -> None:
    """A package's files, where merged /usr has them. Of documents only the licences."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for member in archive:
            _place(archive, member, root)
    if unpacking.returncode:
        raise FailedError(f"{package.name} can't be unpacked: dpkg-deb ended with {unpacking.returncode}", code="image")


def merge(root: Path) -> None:
    """Make the folders of an empty root file system that are links into its /usr."""
    for merged in MERGED:
        (root / "usr" / merged).mkdir(parents=True)
        (root / merged).symlink_to(f"usr/{merged}")


def run(
    command: Sequence[str], way_out: str, *, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """What it prints. FailedError with the end of what it says otherwise."""
    try:
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise FailedError(
            f"{command[0]} is missing on this machine; the image is made on Debian 12", code="image"
        ) from None
    if ran.returncode:
        said = "\n".join(f"  {line}" for line in (ran.stderr or ran.stdout).strip().splitlines()[-12:])
        raise FailedError(f"{Path(command[0]).name} failed; {way_out}\n{said}", code="image")
    return ran.stdout


def _apt(home: Path) -> list[str]:
    """apt with lists of its own: the machine's may be old, or missing, and only root may renew them."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State": home / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": home / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        "Acquire::http::Timeout": 30,
        "Acquire::https::Timeout": 30,
    }
    return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]


def _needed(names: Sequence[str], apt: Sequence[str], home: Path) -> list[str]:
    """The packages and what they depend on, as apt would install them where nothing is installed yet."""
    nothing = home / "apt" / "nothing-installed"
    nothing.write_text("")
    command = [*apt, f"-oDir::State::status={nothing}", "--simulate", "--no-install-recommends", "install", *names]
    return sorted(re.findall(r"^Inst (\S+) ", run(command, _WAY_OUT), re.MULTILINE))


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    name = member.name.removeprefix("./").strip("/")
    if name.split("/")[0] in MERGED:
        name = f"usr/{name}"
    document = name.startswith("usr/share/doc/") and not name.endswith("/copyright")
    if member.isdir() or document or name.startswith(_UNUSED):
        return
    target = root / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        shutil.copyfile(root / member.linkname.removeprefix("./"), target)
    elif source := archive.extractfile(member):
        with target.open("wb") as file:
            shutil.copyfileobj(source, file)
        target.chmod(0o755 if member.mode & 0o111 else 0o644)
