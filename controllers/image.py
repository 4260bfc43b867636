"""The controllers' image, made without any builder and without root: Debian's own Python, packages by hash, our modules.

The same packages and the same checkout make the same bytes. Debian's packages are the newest of this machine's apt sources, which
apt verifies: a rebuild brings its security updates. Nothing of a package is run, so there is no shell and no package manager.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from controllers import contents
from oci.image import PATH, Image, write_layout
from oci.tar import Entry
from tools import build as programs
from tools import cache, manifest

_OWNER = f"{contents.USER}:{contents.USER}"
CODE, PACKAGES = "opt/menagerie/code", "opt/menagerie/packages"
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
_ENVIRONMENT = (
    f"PATH={PATH}",
    f"PYTHONPATH=/{CODE}:/{PACKAGES}",
    "PYTHONDONTWRITEBYTECODE=1",
    "LANG=C.UTF-8",
    f"SSL_CERT_FILE=/{_BUNDLE}",
)
_ENTRYPOINT = (f"/usr/bin/python{contents.PYTHON}", "-P", "-m", "controllers.program")
_MERGED = ("bin", "lib", "lib64", "sbin")
_UNUSED = (
    "usr/sbin/",
    "usr/share/man/",
    "usr/share/lintian/",
    "usr/share/locale/",
    "usr/share/bug/",
    "usr/share/applications/",
)
_FILES = {
    "etc/passwd": f"root:x:0:0::/:/nowhere\ncontroller:x:{contents.USER}:{contents.USER}::/:/nowhere\n",
    "etc/group": f"root:x:0:\ncontroller:x:{contents.USER}:\n",
    # glibc asks only DNS for a host's name unless it is told to look into /etc/hosts first.
    "etc/nsswitch.conf": "hosts: files dns\n",
}

Say = Callable[[str], None]


class ImageError(Exception):
    """The image can't be made or pushed; the text has what the program said, and the way out."""


def build(folder: Path, say: Say = lambda _: None) -> str:
    """Write the image to `folder`, in OCI's layout; the manifest's digest. What was there before is replaced.

    Takes a minute and 150 MB beside the folder while it works. Raises ImageError, tools' BuildError, and OSError of the disk.
    """
    _refuse(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=folder.parent) as name:
        work = Path(name)
        layers = [work / "debian", work / "packages", work / "code"]
        say("unpacking Debian's Python")
        _debian(layers[0], say)
        say("installing the packages of Python")
        _packages(layers[1])
        _code(layers[2])
        say("compiling")
        for layer, below in zip(layers, (f"usr/lib/python{contents.PYTHON}", PACKAGES, CODE), strict=True):
            _compile(layer, below)
        say("writing layers")
        image = Image(tuple(tuple(entries(layer)) for layer in layers), _ENTRYPOINT, _OWNER, _ENVIRONMENT)
        digest = write_layout(image, work / "layout")
        if folder.exists():
            shutil.rmtree(folder)
        (work / "layout").rename(folder)
    return digest


def push(folder: Path, reference: str, say: Say = lambda _: None) -> str:
    """Push an image that `build` wrote; its reference by digest. Logins are those of Docker's configuration file."""
    crane = programs.ensure(["crane"], lambda event: say(str(event)))["crane"]
    return _run([str(crane), "push", str(folder), reference], f"{reference} was not taken").strip().splitlines()[-1]


def _refuse(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / "oci-layout").is_file():
        raise ImageError(f"{folder} has other files than an image; name a folder that is empty, or not there yet")
    if sys.version_info[:2] != tuple(map(int, contents.PYTHON.split("."))):
        raise ImageError(f"modules for the image are compiled by Python {contents.PYTHON}; run it with `./menagerie`")


def _debian(root: Path, say: Say) -> None:
    files: dict[str, bytes] = {path: text.encode() for path, text in _FILES.items()}
    for merged in _MERGED:
        (root / "usr" / merged).mkdir(parents=True)
        (root / merged).symlink_to(f"usr/{merged}")
    for package in _debs(say):
        unpack(package, root)
        control = _run(["dpkg-deb", "--field", str(package)], f"{package.name} can't be read")
        # Where scanners look for what an image without dpkg has.
        files[f"var/lib/dpkg/status.d/{package.name.split('_')[0]}"] = control.encode()
    roots = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    files[_BUNDLE] = b"".join(each.read_bytes() for each in roots)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def _debs(say: Say) -> list[Path]:
    """The packages, verified by apt, kept in the cache until there are newer ones."""
    home = cache.root() / "controllers"
    kept = home / "debian"
    kept.mkdir(parents=True, exist_ok=True)
    way_out = f"the image is made of Debian 12 ({contents.SUITE}): look at the network, and at /etc/apt/sources.list*"
    with cache.locked(home / ".lock", lambda: say("waiting for another process that fetches packages")):
        apt = _apt(home / "apt")
        _run([*apt, "update"], way_out)
        with tempfile.TemporaryDirectory() as elsewhere:  # of what lies here already apt says nothing
            listed = _run([*apt, "--print-uris", "download", *contents.DEBIAN], way_out, cwd=Path(elsewhere))
        sizes = {line.split()[1]: int(line.split()[2]) for line in listed.splitlines()}
        there = {path.name: path for path in kept.iterdir()}
        for name in there.keys() - sizes.keys():
            there[name].unlink()
        # A name has a version, and apt lets no file have it that it has not verified.
        if any(name not in there or there[name].stat().st_size != size for name, size in sizes.items()):
            _run([*apt, "download", *contents.DEBIAN], way_out, cwd=kept)
        return [kept / name for name in sorted(sizes)]


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


def unpack(package: Path, root: Path) -> None:
    """A Debian package's files, where merged /usr has them. Of documents only the licences."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for member in archive:
            _place(archive, member, root)
    if unpacking.returncode:
        raise ImageError(f"{package.name} can't be unpacked: dpkg-deb ended with {unpacking.returncode}")


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    name = member.name.removeprefix("./").strip("/")
    if name.split("/")[0] in _MERGED:
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


def _packages(root: Path) -> None:
    target = root / PACKAGES
    target.mkdir(parents=True)
    pins = root.with_suffix(".txt")
    pins.write_text(contents.requirements((contents.ROOT / "requirements.lock").read_text(encoding="utf-8")))
    command = [
        str(manifest.TOOLS / "setup.sh"),
        "uv",
        "pip",
        "install",
        "--quiet",
        "--target",
        str(target),
        "--no-deps",
    ]
    command += ["--require-hashes", "--only-binary", ":all:", "--link-mode", "copy"]
    command += ["--python-version", contents.PYTHON, "--python-platform", "x86_64-manylinux_2_28"]
    _run([*command, "--requirement", str(pins)], "check the network, and pip's configuration")
    shutil.rmtree(target / "bin", ignore_errors=True)
    (target / ".lock").unlink(missing_ok=True)


def _code(root: Path) -> None:
    modules = contents.modules()
    for path in (*modules, *contents.data(modules), contents.ROOT / "LICENSE"):
        target = root / CODE / path.relative_to(contents.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _compile(root: Path, below: str) -> None:
    """In a process of its own with one seed: what `compile` writes depends on both."""
    command = [sys.executable, "-P", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]
    environment = {"PATH": PATH, "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    _run([*command, "-s", str(root), "-p", "/", str(root / below)], "modules don't compile", environment=environment)


def entries(root: Path) -> Iterator[Entry]:
    """All below `root`, as a layer has it: by name, each folder before what is in it."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            yield Entry(name, target=os.readlink(path))
        elif path.is_dir():
            yield Entry(name)
        else:
            yield Entry(name, path, 0o755 if path.stat().st_mode & 0o100 else 0o644)


def _run(
    command: Sequence[str], way_out: str, *, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """What it prints. ImageError with the end of what it says otherwise."""
    try:
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ImageError(f"{command[0]} is missing on this machine; the image is made on Debian 12") from None
    if ran.returncode:
        said = "\n".join(f"  {line}" for line in (ran.stderr or ran.stdout).strip().splitlines()[-12:])
        raise ImageError(f"{Path(command[0]).name} failed; {way_out}\n{said}")
    return ran.stdout
