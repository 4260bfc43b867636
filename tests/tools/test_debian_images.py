"""Which packages an image's recipe asks for, from files in the format of Debian's recipes."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import yaml

from cluster.debian_images import CLOUDS
from tools import debian_images

IMAGES = """
releases:
- {name: bookworm, faiClasses: [BOOKWORM, LINUX_VERSION_BASE]}
vendors:
- {name: ec2, faiClasses: [CLOUD, EC2, LINUX_VARIANT_CLOUD]}
archs:
- {name: amd64, faiClasses: [AMD64]}
types:
- {name: official, outputName: x}
"""
LISTS = {
    "AMD64": """
PACKAGES install-norec LINUX_VERSION_BASE+LINUX_VARIANT_BASE
linux-image-amd64
PACKAGES install-norec LINUX_VERSION_BASE+LINUX_VARIANT_CLOUD LINUX_VERSION_BACKPORTS+LINUX_VARIANT_CLOUD
linux-image-cloud-amd64
PACKAGES install-norec
grub-cloud-amd64  # boots
""",
    "CLOUD": "PACKAGES install-norec\n# needed\niptables libnss-resolve\n\nPACKAGES remove BOOKWORM\nlibnss-resolve\n",
    "GCE": "PACKAGES install-norec\ngoogle-guest-agent\n",
}


def checkout(folder: Path) -> Path:
    (folder / "src/debian_cloud_images/resources").mkdir(parents=True)
    (folder / "src/debian_cloud_images/resources/image.yaml").write_text(IMAGES)
    lists = folder / "config_space/12/package_config"
    lists.mkdir(parents=True)
    for name, text in LISTS.items():
        (lists / name).write_text(text)
    return folder


def test_an_image_gets_the_sections_of_its_classes_and_loses_what_they_remove(tmp_path: Path) -> None:
    installed, removed = debian_images.asked(checkout(tmp_path), "bookworm", "ec2")
    assert installed == {"iptables", "linux-image-cloud-amd64", "grub-cloud-amd64"}
    assert removed == {"libnss-resolve"}


def test_the_file_names_its_sources_and_lists_common_packages_once() -> None:
    made = {"bookworm": {"aws": {"apt", "awscli"}, "azure": {"apt", "waagent"}, "gcp": {"apt"}}}
    written = yaml.safe_load(debian_images.text("0123abc", "2026-06-02", made, date(2026, 11, 26)))
    assert written["releases"]["bookworm"] == {"everywhere": "apt", "aws": "awscli", "azure": "waagent", "gcp": ""}
    assert written["sources"]["recipes"]["title"].endswith("at 0123abc")
    assert written["sources"]["archive"]["date"] == date(2026, 11, 26)


def test_the_kept_file_is_of_this_form_and_of_every_cloud() -> None:
    kept = yaml.safe_load(debian_images.TARGET.read_text())
    assert set(kept["releases"]) == set(debian_images.RELEASES)
    assert set(debian_images.VENDORS) == set(CLOUDS)
    lists = {
        release: {cloud: set(f"{parts['everywhere']} {parts[cloud]}".split()) for cloud in CLOUDS}
        for release, parts in kept["releases"].items()
    }
    recipes = kept["sources"]["recipes"]
    commit = recipes["title"].rpartition(" ")[2]
    again = debian_images.text(commit, str(recipes["date"]), lists, kept["sources"]["archive"]["date"])
    assert again == debian_images.TARGET.read_text()
    # What debootstrap's smallest variant brings, and the recipe's own lists.
    assert all(
        {"apt", "dpkg", "coreutils", "sudo", "openssh-server"} <= each for by in lists.values() for each in by.values()
    )


def test_an_archive_is_seen_from_an_empty_system(tmp_path: Path, monkeypatch) -> None:
    """With a fake apt: required and essential packages count, and apt itself; a closure is what apt would install."""
    (tmp_path / "bin").mkdir()
    answers = {
        "apt-get": 'case "$*" in\n*indextargets*) echo "trixie main http://a/debian" ;;\n'
        '*simulate*) echo "Inst b (1 x [amd64])"; echo "Inst a (1 x [amd64])"; echo "Conf a (1)" ;;\nesac',
        "apt-cache": 'printf "Package: a\\nPriority: required\\n\\nPackage: b\\nEssential: yes\\nPriority: optional\\n\\n'
        'Package: c\\nPriority: important\\n"',
    }
    for name, answer in answers.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    archive = debian_images.Archive(tmp_path / "home", "bookworm")
    assert archive.smallest() == {"a", "b", "apt"}
    assert archive.closure({"a"}) == {"a", "b"}
    assert "http://a/debian bookworm main" in (tmp_path / "home" / "sources.list").read_text()
