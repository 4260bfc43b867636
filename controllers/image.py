"""The controllers' image, made without any builder and without root: Debian's own Python, packages by hash, our modules.

The same packages and the same checkout make the same bytes. Debian's packages are the newest of this machine's apt sources, which
apt verifies: a rebuild brings its security updates. Nothing of a package is run, so there is no shell and no package manager.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from cluster.errors import FailedError
from cluster.project import ROOT
from controllers import contents
from tools import build as programs
from tools import cache, manifest
from tools.oci import debian, tar
from tools.oci.debian import run
from tools.oci.image import PATH, Image, write_layout

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
_FILES = {
    "etc/passwd": f"root:x:0:0::/:/nowhere\ncontroller:x:{contents.USER}:{contents.USER}::/:/nowhere\n",
    "etc/group": f"root:x:0:\ncontroller:x:{contents.USER}:\n",
    # glibc asks only DNS for a host's name unless it is told to look into /etc/hosts first.
    "etc/nsswitch.conf": "hosts: files dns\n",
}

Say = Callable[[str], None]


def build(folder: Path, say: Say = lambda _: None) -> str:
    """Write the image to `folder`, in OCI's layout; the manifest's digest. What was there before is replaced.

    Takes a minute and 150 MB beside the folder while it works. Raises FailedError, and OSError of the disk.
    """
    refuse(folder)
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
        image = Image(tuple(tuple(tar.entries(layer)) for layer in layers), _ENTRYPOINT, _OWNER, _ENVIRONMENT)
        digest = write_layout(image, work / "layout")
        if folder.exists():
            shutil.rmtree(folder)
        (work / "layout").rename(folder)
    return digest


def push(folder: Path, reference: str, say: Say = lambda _: None) -> str:
    """Push an image that `build` wrote; its reference by digest. Logins are those of Docker's configuration file."""
    crane = programs.ensure(["crane"], lambda event: say(str(event)))["crane"]
    return run([str(crane), "push", str(folder), reference], f"{reference} was not taken").strip().splitlines()[-1]


def refuse(folder: Path) -> None:
    """Raise ImageError for what `build` would refuse."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "oci-layout").is_file():
        raise FailedError(
            f"{folder} has other files than an image; name a folder that is empty, or not there yet", code="image"
        )
    if sys.version_info[:2] != tuple(map(int, contents.PYTHON.split("."))):
        raise FailedError(
            f"modules for the image are compiled by Python {contents.PYTHON}; run it with `./menagerie`", code="image"
        )


def _debian(root: Path, say: Say) -> None:
    files: dict[str, bytes] = {path: text.encode() for path, text in _FILES.items()}
    debian.merge(root)
    for package in _debs(say):
        debian.unpack(package, root)
        control = run(["dpkg-deb", "--field", str(package)], f"{package.name} can't be read")
        # Where scanners look for what an image without dpkg has.
        files[f"var/lib/dpkg/status.d/{package.name.split('_')[0]}"] = control.encode()
    roots = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    files[_BUNDLE] = b"".join(each.read_bytes() for each in roots)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def _debs(say: Say) -> list[Path]:
    """The packages, kept in the cache until there are newer ones."""
    home = cache.root() / "controllers"
    with cache.locked(home / ".lock", lambda: say("waiting for another process that fetches packages")):
        return debian.fetch(contents.DEBIAN, home)


def _packages(root: Path) -> None:
    target = root / PACKAGES
    target.mkdir(parents=True)
    pins = root.with_suffix(".txt")
    pins.write_text(contents.requirements((ROOT / "requirements.lock").read_text(encoding="utf-8")))
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
    run([*command, "--requirement", str(pins)], "check the network, and pip's configuration")
    shutil.rmtree(target / "bin", ignore_errors=True)
    (target / ".lock").unlink(missing_ok=True)


def _code(root: Path) -> None:
    modules = contents.modules()
    for path in (*modules, *contents.data(modules), ROOT / "LICENSE"):
        target = root / CODE / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _compile(root: Path, below: str) -> None:
    """In a process of its own with one seed: what `compile` writes depends on both."""
    command = [sys.executable, "-P", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]
    environment = {"PATH": PATH, "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    run([*command, "-s", str(root), "-p", "/", str(root / below)], "modules don't compile", environment=environment)
