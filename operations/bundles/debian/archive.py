"""Debian's archive as text: what a signed Release lists, and the packages of a list. No I/O.

The formats are in Debian's wiki, "DebianRepository/Format". Debian's own InRelease is its Release, signed in clear (RFC 9580,
"Cleartext Signature Framework"); no line of a Release starts with a dash, so none is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cluster.provisioning import Release

ARCH = "amd64"
MAIN, SECURITY = "ftp.debian.org/debian", "security.debian.org/debian-security"
_BEGIN, _END = "-----BEGIN PGP SIGNED MESSAGE-----\n", "-----BEGIN PGP SIGNATURE-----\n"
_SUM = re.compile(r" ([0-9a-f]{64}) +[0-9]+ (\S+)")
_FIELD = re.compile(r"^(Package|Version|Priority|Filename|SHA256): (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Suite:
    """A suite of an archive. archive: host/path; name: as in sources.list."""

    archive: str
    name: str

    @property
    def folder(self) -> str:
        """Return host/path of the suite's lists."""
        return f"{self.archive}/dists/{self.name}"

    @property
    def is_main(self) -> bool:
        return self.archive == MAIN and "-" not in self.name


def suites(release: Release) -> tuple[Suite, ...]:
    """Return the suites of a release, the main one first. Only the others' lists expire, a week after they were signed."""
    return Suite(MAIN, release), Suite(MAIN, f"{release}-updates"), Suite(SECURITY, f"{release}-security")


def indexes(suite: Suite) -> tuple[str, ...]:
    """Return the lists that hosts fetch, without what is compressed. Debian's installer needs more of the main suite."""
    of_hosts = (f"main/binary-{ARCH}/Packages", "main/i18n/Translation-en")
    of_installer = (f"main/debian-installer/binary-{ARCH}/Packages", f"{IMAGES}/SHA256SUMS")
    return (*of_hosts, *of_installer) if suite.is_main else of_hosts


IMAGES = f"main/installer-{ARCH}/current/images"
NETBOOT = tuple(f"netboot/debian-installer/{ARCH}/{name}" for name in ("linux", "initrd.gz"))
"""The installer's kernel and root file system, below `IMAGES`."""


def release_in(signed: str) -> str:
    """Return the Release in an InRelease, "" if there is none. Its signature isn't verified here."""
    if not signed.startswith(_BEGIN) or _END not in signed:
        return ""
    return signed.partition("\n\n")[2].partition(_END)[0]


def sums(release: str) -> dict[str, str]:
    """Return what a Release lists: path below the suite -> SHA-256."""
    _, _, rest = release.partition("\nSHA256:\n")
    checksums = {}
    for line in rest.splitlines():
        match = _SUM.fullmatch(line)
        if not match:
            break
        checksums[match[2]] = match[1]
    return checksums


def smallest(listed: dict[str, str], index: str) -> str:
    """Return the form of a list that apt and the installer prefer, "" if the suite has none."""
    return next((f"{index}{form}" for form in (".xz", ".gz", "") if f"{index}{form}" in listed), "")


def version_of(release: str) -> str:
    """Return which state of a suite a Release describes: 13.8, or the date of suites that change daily."""
    fields = dict(re.findall(r"^(Version|Date): (.+)$", release.partition("\nSHA256:\n")[0], re.MULTILINE))
    version = fields.get("Version", "")
    return version if "." in version else str(fields.get("Date", version))


@dataclass(frozen=True)
class Package:
    """A package of a list. source: host/path."""

    name: str
    version: str
    priority: str
    source: str
    sha256: str


def packages(text: str, archive: str) -> Iterator[Package]:
    """Yield the packages of a list, without those that aren't complete. archive: host/path, to which file names are relative."""
    for paragraph in text.split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        if fields.keys() >= {"Package", "Version", "Filename", "SHA256"}:
            yield Package(
                fields["Package"],
                fields["Version"],
                fields.get("Priority", ""),
                f"{archive}/{fields['Filename']}",
                fields["SHA256"],
            )


def netboot(listed: str) -> dict[str, str]:
    """Return the installer's files from a SHA256SUMS: path below `IMAGES` -> SHA-256. Without those that it lacks."""
    lines = [line.split() for line in listed.splitlines()]
    checksums = {words[1]: words[0] for words in lines if len(words) == 2}
    return {name: checksums[f"./{name}"] for name in NETBOOT if f"./{name}" in checksums}
