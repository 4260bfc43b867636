"""Build the controllers' image without a container builder or root: Debian's Python, Python packages by hash, our modules.

The same packages and the same checkout produce the same bytes. Debian's packages are the newest of this machine's apt sources,
verified by apt, so a rebuild includes security updates. No package scripts run, so the image needs neither a shell nor a package
manager.
"""

from __future__ import annotations

import json
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


def build(folder: Path, say: Say = lambda _: None, *, fresh: bool = False) -> str:
    """Write the image to `folder` as an OCI layout, replacing an earlier one; return the manifest's digest.

    The cache keeps the last image, which is copied if nothing that it is made of has changed. Otherwise, or with fresh, this takes a
    minute, and 150 MB next to the cache while it works. Errors: raises FailedError, and OSError for the disk.
    """
    refuse(folder)
    debs, kept = _debs(say), cache.root() / "controllers" / "image"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=folder.parent) as name:
        layout = Path(name) / "layout"
        with locked(kept.with_name(".image"), busy=lambda: say("waiting for another process that builds the image")):
            _keep(kept, debs, say, fresh=fresh)
            shutil.copytree(kept, layout)
        if folder.exists():
            shutil.rmtree(folder)
        layout.rename(folder)
    return digest_of(folder)


def digest_of(folder: Path) -> str:
    """Return the digest of an image's manifest."""
    digest: str = json.loads((folder / "index.json").read_text())["manifests"][0]["digest"]
    return digest


def _keep(kept: Path, debs: list[Path], say: Say, *, fresh: bool) -> None:
    """Make `kept` the image of these inputs, unless it is."""
    record, inputs = kept.with_suffix(".inputs"), _inputs(debs)
    if not fresh and record.is_file() and record.read_text() == inputs and _is_intact(kept):
        say("the image of the same files is in the cache")
        return
    record.unlink(missing_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=kept.parent) as name:
        _make(Path(name), debs, say).rename(kept)
    record.write_text(inputs)


def _inputs(debs: list[Path]) -> str:
    """Return the digest of all that an image is made of. A package's name contains its version, and apt has verified it."""
    parts: list[str | bytes] = [package.name for package in debs]
    parts.append(contents.requirements((TOOLKIT / "requirements.lock").read_text(encoding="utf-8")))
    builders = (TOOLKIT / "controllers" / "contents.py", TOOLKIT / "controllers" / "image.py")
    makers = (*builders, *sorted((TOOLKIT / "tools" / "oci").glob("*.py")))
    for path in (*makers, *_own_files()):
        parts += [str(path.relative_to(TOOLKIT)), path.read_bytes()]
    return cache.digest(*parts)


def _is_intact(kept: Path) -> bool:
    blobs = list(kept.glob("blobs/sha256/*"))
    return bool(blobs) and all(cache.file_digest(blob) == blob.name for blob in blobs)


def _make(work: Path, debs: list[Path], say: Say) -> Path:
    """Build the image below an empty folder; return its layout."""
    layers = [work / "debian", work / "packages", work / "code"]
    say("unpacking Debian's Python")
    _debian(layers[0], debs)
    say("installing Python packages")
    _packages(layers[1])
    _code(layers[2])
    say("compiling")
    for layer, below in zip(layers, (f"usr/lib/python{contents.PYTHON}", PACKAGES, CODE), strict=True):
        _compile(layer, below, layers[0])
    say("writing layers")
    image = Image(tuple(tuple(tar.entries(layer)) for layer in layers), _ENTRYPOINT, _OWNER, _ENVIRONMENT)
    write_layout(image, work / "layout")
    return work / "layout"


def push(folder: Path, reference: str, say: Say = lambda _: None) -> str:
    """Push an image that `build` wrote; return its reference by digest. Logins come from Docker's configuration file."""
    crane = programs.ensure(["crane"], lambda event: say(str(event)))["crane"]
    return run([str(crane), "push", str(folder), reference], f"{reference} was not accepted").strip().splitlines()[-1]


def refuse(folder: Path) -> None:
    """Raise FailedError if `build` would refuse."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "oci-layout").is_file():
        raise FailedError(f"{folder} contains files that are not an image; name an empty or new folder", code="image")


def _debian(root: Path, debs: list[Path]) -> None:
    files: dict[str, bytes] = {path: text.encode() for path, text in _FILES.items()}
    debian.merge(root)
    for package in debs:
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
    for path in _own_files():
        target = root / CODE / path.relative_to(TOOLKIT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _own_files() -> tuple[Path, ...]:
    modules = contents.modules()
    return (*modules, *contents.data(modules), TOOLKIT / "LICENSE")


def _compile(root: Path, below: str, debian_root: Path) -> None:
    """Compile with the image's Python, in a separate process with a fixed hash seed: the bytes depend on both."""
    usr = debian_root / "usr"
    loader = [str(usr / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(usr / "lib/x86_64-linux-gnu")]
    command = [*loader, str(usr / f"bin/python{contents.PYTHON}"), "-P", "-m", "compileall", "-q", "-f"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/", str(root / below)]
    environment = {"PATH": PATH, "PYTHONHOME": str(usr), "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    run(command, "modules don't compile", environment=environment)
