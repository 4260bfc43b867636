"""Debian packages in images: what is downloaded, and where the files go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster.errors import FailedError
from tools.oci import debian, tar

APT = """#!/bin/sh
echo "$@" >>{log}
for word; do last=$word; done
case "$*" in
indextargets*) echo "bookworm main http://x/debian/"; exit ;;
*--simulate*) printf 'Inst libc6 (2.36 Debian:12/stable [amd64])\\nInst dash (0.5 Debian:12)\\nConf dash (0.5)\\n' ;;
*--print-uris*) printf "'http://x/dash.deb' dash_0.5_amd64.deb 4 SHA256:1\\n'http://x/libc6.deb' libc6_2.36_amd64.deb 4 SHA256:2\\n" ;;
*download*) printf dash >dash_0.5_amd64.deb; printf libc >libc6_2.36_amd64.deb ;;
esac
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace apt by a script; return the file where it logs its calls."""
    log = tmp_path / "asked"
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(APT.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return log


def downloads(log: Path) -> list[str]:
    """Return the packages of each call that really downloaded some."""
    return [
        line.partition(" download ")[2]
        for line in log.read_text().splitlines()
        if "--print" not in line and " download " in line
    ]


def test_packages_are_fetched_once_with_their_dependencies(apt: Path, tmp_path: Path) -> None:
    files = debian.fetch(["dash"], tmp_path / "home", with_needed=True)
    assert [path.name for path in files] == ["dash_0.5_amd64.deb", "libc6_2.36_amd64.deb"]
    assert downloads(apt) == ["dash libc6"]
    assert debian.fetch(["dash"], tmp_path / "home", with_needed=True) == files
    assert len(downloads(apt)) == 1


def test_packages_are_fetched_without_dependencies_by_default(apt: Path, tmp_path: Path) -> None:
    debian.fetch(["dash"], tmp_path / "home")
    assert downloads(apt) == ["dash"]
    assert "--simulate" not in apt.read_text()


def test_an_older_package_and_a_partial_one_are_fetched_again(apt: Path, tmp_path: Path) -> None:
    kept = tmp_path / "home" / "debian"
    kept.mkdir(parents=True)
    (kept / "dash_0.4_amd64.deb").write_text("old!")
    (kept / "libc6_2.36_amd64.deb").write_text("l")
    files = debian.fetch(["dash"], tmp_path / "home")
    assert sorted(kept.iterdir()) == files
    assert [path.read_text() for path in files] == ["dash", "libc"]


def test_a_failure_of_apt_is_reported_with_its_message(tmp_path: Path, apt: Path) -> None:
    program = tmp_path / "bin" / "apt-get"
    program.write_text(
        "#!/bin/sh\n[ $1 = indextargets ] && exec echo trixie main http://x/debian/\necho no such archive >&2; exit 100\n"
    )
    with pytest.raises(FailedError, match=r"(?s)apt-get failed.*no such archive"):
        debian.fetch(["dash"], tmp_path / "home")


def test_a_package_is_unpacked_into_merged_folders(tmp_path: Path) -> None:
    package = tmp_path / "package"
    for name in (
        "DEBIAN/control",
        "bin/tool",
        "usr/share/doc/x/copyright",
        "usr/share/doc/x/changelog",
        "usr/share/man/x",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(
            "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
        )
    (package / "bin/tool").chmod(0o755)
    (package / "bin/other").symlink_to("tool")
    subprocess.run(["dpkg-deb", "--build", package, tmp_path / "x.deb"], check=True, capture_output=True)
    root = tmp_path / "root"
    debian.merge(root)
    debian.unpack(tmp_path / "x.deb", root)
    entries = {entry.name: entry for entry in tar.entries(root)}
    assert {name for name, entry in entries.items() if entry.content} == {"usr/bin/tool", "usr/share/doc/x/copyright"}
    assert (entries["bin"].target, entries["usr/bin/other"].target) == ("usr/bin", "tool")
    assert (entries["usr/bin/tool"].mode, entries["usr/share/doc/x/copyright"].mode) == (0o755, 0o644)
