"""A small archive of Debian's form, whose signatures and lists are committed: `python -m tests.operations.bundles.archive`
makes it again, with a new key that it throws away. Only that needs gpg. Packages' files are made by tests: any bytes will do.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from operations.bundles.debian.archive import IMAGES, MAIN, NETBOOT, SECURITY
from operations.bundles.debian.host_packages import BASE, LOADERS
from tests.operations.bundles.conftest import content, digest

FOLDER = Path(__file__).with_name("debian_archive")
KEY = FOLDER / "key.asc"
NAMES = (
    *(
        "ca-certificates",
        "charon-systemd",
        "ethtool",
        "frr",
        "frr-pythontools",
        "iproute2",
        "iptables",
        "lldpd",
        "mount",
    ),
    *("libstrongswan-standard-plugins", "nftables", "openssl", "perftest", "python3", "strongswan-swanctl", "sudo"),
    *("unattended-upgrades", "util-linux", "dkms", "linux-headers-amd64", *BASE, *LOADERS[0]),
)
CHRONY, CHRONY_FIXED = (
    "pool/main/c/chrony/chrony_4.6~rc1+b2_amd64.deb",
    "pool/updates/main/c/chrony/chrony_4.6+deb13u1_amd64.deb",
)
_RELEASE = """\
Origin: Debian
Suite: {suite}
Version: 13.8
Codename: {suite}
Date: Wed, 01 Jan 2025 00:00:00 UTC
Acquire-By-Hash: yes
Architectures: amd64
Components: main
SHA256:
"""


def _package(name: str, *more: str, version: str = "1", file: str = "", archive: str = MAIN) -> str:
    file = file or f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb"
    data = content(f"{archive}/{file}")
    fields = (f"Package: {name}", f"Version: {version}", "Architecture: amd64", f"Filename: {file}", *more)
    return "".join(f"{line}\n" for line in (*fields, f"Size: {len(data)}", f"SHA256: {digest(data)}"))


def _main() -> Iterator[str]:
    yield _package("dpkg", "Priority: required", "Essential: yes")
    yield _package("cron", "Priority: important")
    yield _package("chrony", "Depends: libcap2", version="4.6~rc1+b2", file=CHRONY)
    yield _package("libcap2", "Priority: optional")
    yield _package(
        "openssh-server", "Recommends: xauth", version="1:10.0p1-7", file="pool/main/o/ssh_10.0p1-7_amd64.deb"
    )
    yield _package("xauth")
    yield _package("grub-pc", "Conflicts: grub-efi-amd64")
    yield _package("nethack")
    yield from map(_package, NAMES)


def _lists() -> dict[str, dict[str, str]]:
    """Return suite's folder -> path -> text."""
    images = "".join(f"{digest(content(f'{MAIN}/dists/trixie/{IMAGES}/{name}'))}  ./{name}\n" for name in NETBOOT)
    installer = _package("base-installer", file="pool/main/b/base-installer_1_all.udeb")
    fixed = _package("chrony", "Depends: libcap2", version="4.6+deb13u1", file=CHRONY_FIXED, archive=SECURITY)
    return {
        f"{MAIN}/dists/trixie": {
            "main/binary-amd64/Packages": "\n".join(_main()),
            "main/debian-installer/binary-amd64/Packages": installer,
            f"{IMAGES}/SHA256SUMS": images + f"{'0' * 64}  ./cdrom/vmlinuz\n",
        },
        f"{MAIN}/dists/trixie-updates": {"main/binary-amd64/Packages": ""},
        f"{SECURITY}/dists/trixie-security": {"main/binary-amd64/Packages": fixed},
    }


def _gpg(home: Path, *words: str | Path) -> None:
    # A clock that is behind must not take the signatures for ones from the future.
    when = ("--faked-system-time", "20250101T000000")
    subprocess.run(["gpg", "--homedir", home, "--batch", "--yes", "--quiet", *when, *words], check=True)


def _sign(home: Path, folder: Path) -> None:
    release = folder / "Release"
    _gpg(home, "--clearsign", "--output", folder / "InRelease", release)
    _gpg(home, "--armor", "--detach-sign", "--output", folder / "Release.gpg", release)


def make() -> None:
    """Write the folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        _gpg(home, "--passphrase", "", "--quick-gen-key", "Archive of tests", "rsa3072", "sign", "never")
        FOLDER.mkdir()
        _gpg(home, "--armor", "--output", KEY, "--export")
        for suite, files in _lists().items():
            folder = FOLDER / suite
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
            lines = [
                f" {hashlib.sha256(text.encode()).hexdigest()} {len(text)} {path}\n" for path, text in files.items()
            ]
            (folder / "Release").write_text(_RELEASE.format(suite=folder.name) + "".join(lines))
            _sign(home, folder)


def filled(folder: Path, sources: Sequence[str]) -> None:
    """Copy the archive to download sites, with the files that its lists name."""
    for archive in (MAIN, SECURITY):
        shutil.copytree(FOLDER / archive, folder / archive)
    for source in sources:
        path = folder / source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(source))


if __name__ == "__main__":
    make()
