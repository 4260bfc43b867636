"""Build the controllers' image without a container builder or root: Debian's Python, Python packages by hash, our modules.

The same packages and the same checkout produce the same bytes. Debian's packages are the newest of this machine's apt sources,
verified by apt, so a rebuild includes security updates. No package scripts run, so the image needs neither a shell nor a package
manager.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from cluster.errors import FailedError
from cluster.locks import locked
from cluster.project import TOOLKIT
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
    # Without this, glibc asks only DNS for a host's name and ignores /etc/hosts.
    "etc/nsswitch.conf": "hosts: files dns\n",
}

Say = Callable[[str], None]


def build(folder: Path, say: Say = lambda _: None) -> str:
    """Write the image to `folder` as an OCI layout, replacing an earlier one; return the manifest's digest.

    Takes a minute, and 150 MB next to the folder while it works. Errors: raises FailedError, and OSError for the disk.
    """
    refuse(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=folder.parent) as name:
        work = Path(name)
        layers = [work / "debian", work / "packages", work / "code"]
        say("unpacking Debian's Python")
        _debian(layers[0], say)
        say("installing Python packages")
        _packages(layers[1])
        _code(layers[2])
        say("compiling")
        for layer, below in zip(layers, (f"usr/lib/python{contents.PYTHON}", PACKAGES, CODE), strict=True):
            _compile(layer, below, layers[0])
        say("writing layers")
        image = Image(tuple(tuple(tar.entries(layer)) for layer in layers), _ENTRYPOINT, _OWNER, _ENVIRONMENT)
        digest = write_layout(image, work / "layout")
        if folder.exists():
            shutil.rmtree(folder)
        (work / "layout").rename(folder)
    return digest


def push(folder: Path, reference: str, say: Say = lambda _: None) -> str:
    """Push an image that `build` wrote; return its reference by digest. Logins come from Docker's configuration file."""
    crane = programs.ensure(["crane"], lambda event: say(str(event)))["crane"]
    return run([str(crane), "push", str(folder), reference], f"{reference} was not accepted").strip().splitlines()[-1]


def refuse(folder: Path) -> None:
    """Raise FailedError if `build` would refuse."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "oci-layout").is_file():
        raise FailedError(f"{folder} contains files that are not an image; name an empty or new folder", code="image")


def _debian(root: Path, say: Say) -> None:
    files: dict[str, bytes] = {path: text.encode() for path, text in _FILES.items()}
    debian.merge(root)
    for package in _debs(say):
        debian.unpack(package, root)
        control = run(["dpkg-deb", "--field", str(package)], f"{package.name} can't be read")
        # Vulnerability scanners look here for the packages of an image without dpkg.
        files[f"var/lib/dpkg/status.d/{package.name.split('_')[0]}"] = control.encode()
    roots = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    files[_BUNDLE] = b"".join(each.read_bytes() for each in roots)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def _debs(say: Say) -> list[Path]:
    """Return the packages, from the cache unless there are newer ones."""
    home = cache.root() / "controllers"
    with locked(home / ".lock", busy=lambda: say("waiting for another process that fetches packages")):
        return debian.fetch(contents.DEBIAN, home)


def _packages(root: Path) -> None:
    target = root / PACKAGES
    target.mkdir(parents=True)
    pins = root.with_suffix(".txt")
    pins.write_text(contents.requirements((TOOLKIT / "requirements.lock").read_text(encoding="utf-8")))
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
    run([*command, "--requirement", str(pins)], "check the network and pip's configuration")
    shutil.rmtree(target / "bin", ignore_errors=True)
    (target / ".lock").unlink(missing_ok=True)


def _code(root: Path) -> None:
    modules = contents.modules()
    for path in (*modules, *contents.data(modules), TOOLKIT / "LICENSE"):
        target = root / CODE / path.relative_to(TOOLKIT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _compile(root: Path, below: str, debian_root: Path) -> None:
    """Compile with the image's Python, in a separate process with a fixed hash seed: the bytes depend on both."""
    usr = debian_root / "usr"
    loader = [str(usr / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(usr / "lib/x86_64-linux-gnu")]
    command = [*loader, str(usr / f"bin/python{contents.PYTHON}"), "-P", "-m", "compileall", "-q", "-f"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/", str(root / below)]
    environment = {"PATH": PATH, "PYTHONHOME": str(usr), "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    run(command, "modules don't compile", environment=environment)
