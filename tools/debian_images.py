"""What Debian's images for clouds contain, computed from the recipes that build them: cluster/debian_images.yaml.

The recipes are those of https://salsa.debian.org/cloud-team/debian-cloud-images: debootstrap's variant minbase, and lists of
packages by class, installed without recommended packages. apt says what they depend on; nothing is installed.

usage: .venv/bin/python -m tools.debian_images CHECKOUT
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

import yaml

from cluster.errors import FailedError
from tools import apt

TARGET = Path(__file__).resolve().parent.parent / "cluster" / "debian_images.yaml"
RELEASES = {"bookworm": "12", "trixie": "13"}
VENDORS = {"aws": "ec2", "azure": "azure", "gcp": "gce"}
"""Cloud -> its name in the recipes."""
_HEAD = """\
# Packages of Debian's images for clouds, amd64. Written by `.venv/bin/python -m tools.debian_images CHECKOUT`.
# Google builds the images of its project debian-cloud from the same recipe and adds packages of its own.
# yamllint disable rule:line-length
"""


def classes(images: Mapping[str, list[dict[str, object]]], release: str, vendor: str) -> frozenset[str]:
    """Return the classes of an official image for amd64. images: the recipes' image.yaml."""
    named = (("releases", release), ("vendors", vendor), ("archs", "amd64"), ("types", "official"))
    fai_classes: set[str] = {"DEBIAN", "BASE"}
    for part, name in named:
        (entry,) = [entry for entry in images[part] if entry["name"] == name]
        more = entry.get("faiClasses", [])
        assert isinstance(more, list)
        fai_classes |= set(more)
    return frozenset(fai_classes)


def listed(text: str, fai_classes: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the packages that a list installs and removes. Its format is that of FAI's package_config.

    A section holds for every image, or if one of its classes does; A+B holds if both do.
    """
    names: dict[str, set[str]] = {"install": set(), "remove": set()}
    kind = ""
    for line in (line.partition("#")[0].split() for line in text.splitlines()):
        if line[:1] == ["PACKAGES"]:
            holds = not line[2:] or any(set(each.split("+")) <= set(fai_classes) for each in line[2:])
            kind = line[1].partition("-")[0] if holds else ""
        elif kind:
            names[kind] |= set(line)
    return names["install"], names["remove"]


def asked(checkout: Path, release: str, vendor: str) -> tuple[set[str], set[str]]:
    """Return the packages that an image's recipe installs and removes."""
    images = yaml.safe_load((checkout / "src/debian_cloud_images/resources/image.yaml").read_text())
    fai_classes = classes(images, release, vendor)
    installed: set[str] = set()
    removed: set[str] = set()
    for name in sorted(fai_classes):
        file = checkout / "config_space" / RELEASES[release] / "package_config" / name
        if file.is_file():
            more, less = listed(file.read_text(), fai_classes)
            installed, removed = installed | more, removed | less
    return installed - removed, removed


class Archive:
    """Debian's archive, as this machine's apt reaches it, seen from an empty system of one release."""

    def __init__(self, home: Path, release: str) -> None:
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (home / folder).mkdir(parents=True)
        (home / "nothing-installed").touch()
        sources = apt.of_release(_run(*apt.INDEXES), release)
        (home / "sources.list").write_text("".join(f"{source.line}\n" for source in sources))
        options = {
            "Dir::State": home / "state",
            "Dir::State::status": home / "nothing-installed",
            "Dir::Etc::sourcelist": home / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Cache": home / "cache",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        self._options = [f"-o{name}={value}" for name, value in options.items()]
        _run("apt-get", "-qq", *self._options, "update")

    def smallest(self) -> set[str]:
        """Return what debootstrap's variant minbase asks for: required packages, essential ones and apt."""
        text = _run("apt-cache", *self._options, "dumpavail")
        records = [dict(re.findall(r"^(\w+): (.*)$", record, re.MULTILINE)) for record in text.split("\n\n")]
        required = {
            each["Package"] for each in records if each.get("Priority") == "required" or each.get("Essential") == "yes"
        }
        return required | {"apt"}

    def closure(self, names: Iterable[str]) -> set[str]:
        """Return packages with their dependencies, as apt would install them on an empty system."""
        command = ("apt-get", "-qq", *self._options, "--simulate", "--no-install-recommends", "install", *sorted(names))
        return set(re.findall(r"^Inst (\S+) ", _run(*command), re.MULTILINE))


def images(checkout: Path, release: str) -> dict[str, set[str]]:
    """Return cloud -> the packages of its image."""
    with tempfile.TemporaryDirectory() as home:
        archive = Archive(Path(home), release)
        made = {}
        for cloud, vendor in VENDORS.items():
            installed, removed = asked(checkout, release, vendor)
            made[cloud] = archive.closure(installed | archive.smallest()) - removed
        return made


def text(commit: str, committed: str, releases: Mapping[str, Mapping[str, set[str]]], today: date) -> str:
    """Return the file. committed: date of the recipes' commit."""
    return _HEAD + "\n".join(_lines(commit, committed, releases, today)) + "\n"


def _lines(commit: str, committed: str, releases: Mapping[str, Mapping[str, set[str]]], today: date) -> Iterator[str]:
    yield "sources:"
    yield f'  recipes: {{title: "https://salsa.debian.org/cloud-team/debian-cloud-images at {commit}", date: {committed}}}'
    yield f'  archive: {{title: "dependencies, by apt: main with updates and security updates", date: {today}}}'
    yield "releases:"
    for release, clouds in releases.items():
        common = set.intersection(*clouds.values())
        yield f"  {release}:"
        for name, packages in {"everywhere": common, **{c: each - common for c, each in clouds.items()}}.items():
            yield f"    {name}: >-"
            yield textwrap.fill(" ".join(sorted(packages)), 120, initial_indent=" " * 6, subsequent_indent=" " * 6,
                                break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(command[:1])} failed: {(done.stderr or done.stdout).strip()}", code="programs")
    return done.stdout


def main() -> None:
    """Write the file. The argument is a checkout of the recipes."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "config_space").is_dir():
        sys.exit("usage: python -m tools.debian_images CHECKOUT: a checkout of debian-cloud-images")
    checkout = Path(sys.argv[1])
    commit, committed = _run("git", "-C", str(checkout), "log", "-1", "--format=%H %cs").split()
    try:
        made = {release: images(checkout, release) for release in RELEASES}
    except FailedError as error:
        sys.exit(str(error))
    TARGET.write_text(text(commit, committed, made, date.today()))


if __name__ == "__main__":
    main()
