"""Debian packages as files of an image: fetched by apt, which verifies them, and unpacked without root.

No package script is run, so what scripts would create is missing: users, alternatives, caches.
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
from tools import apt as archives

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
_WAY_OUT = (
    f"the image is built from {archives.RELEASE} ({archives.SUITE}): check the network and /etc/apt/sources.list*"
)


def fetch(names: Sequence[str], home: Path, *, with_needed: bool = False) -> list[Path]:
    """Return the packages, verified by apt and kept below `home` until there are newer ones. One process per folder at a time.

    with_needed: also all their dependencies. Raises FailedError with apt's output.
    """
    kept = home / "debian"
    kept.mkdir(parents=True, exist_ok=True)
    apt = _apt(home / "apt")
    run([*apt, "update"], _WAY_OUT)
    packages = _needed(names, apt, home) if with_needed else names
    with tempfile.TemporaryDirectory() as elsewhere:  # apt lists no package that is already in the current folder
        output = run([*apt, "--print-uris", "download", *packages], _WAY_OUT, cwd=Path(elsewhere))
    sizes = {line.split()[1]: int(line.split()[2]) for line in output.splitlines()}
    present = {path.name: path for path in kept.iterdir()}
    for name in present.keys() - sizes.keys():
        present[name].unlink()
    # The file name contains the version, and apt only keeps files that it has verified.
    if any(name not in present or present[name].stat().st_size != size for name, size in sizes.items()):
        run([*apt, "download", *packages], _WAY_OUT, cwd=kept)
    return [kept / name for name in sorted(sizes)]


def unpack(package: Path, root: Path) -> None:
    """Unpack a package's files to where a merged /usr has them. Of its documentation only licences are kept."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for member in archive:
            _place(archive, member, root)
    if unpacking.returncode:
        raise FailedError(
            f"{package.name} can't be unpacked: dpkg-deb exited with {unpacking.returncode}", code="image"
        )


def merge(root: Path) -> None:
    """Create the folders of an empty root file system that are links into its /usr."""
    for merged in MERGED:
        (root / "usr" / merged).mkdir(parents=True)
        (root / merged).symlink_to(f"usr/{merged}")


def run(
    command: Sequence[str], way_out: str, *, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """Return the command's standard output. Raises FailedError with the end of its output."""
    try:
        result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise FailedError(f"{command[0]} is missing on this machine; build the image on Debian", code="image") from None
    if result.returncode:
        tail = "\n".join(f"  {line}" for line in (result.stderr or result.stdout).strip().splitlines()[-12:])
        raise FailedError(f"{Path(command[0]).name} failed; {way_out}\n{tail}", code="image")
    return result.stdout


def _apt(home: Path) -> list[str]:
    """Return apt-get with separate sources and lists: the machine may have another release, and only root can update its lists."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State": home / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Etc::sourcelist": _source_list(home),
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Cache": home / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        "Acquire::http::Timeout": 30,
        "Acquire::https::Timeout": 30,
    }
    return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]


def _source_list(home: Path) -> Path:
    sources = archives.of_release(run(archives.INDEXES, _WAY_OUT))
    if not sources:
        raise FailedError(f"apt has no archive of Debian on this machine; {_WAY_OUT}", code="image")
    path = home / "sources.list"
    path.write_text("".join(f"{source.line}\n" for source in sources))
    return path


def _needed(names: Sequence[str], apt: Sequence[str], home: Path) -> list[str]:
    """Return the packages and their dependencies, as apt would install them on an empty system."""
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
