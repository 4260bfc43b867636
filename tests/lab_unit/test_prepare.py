from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.lab import artefacts, images, prepare, rootfs
from sandbox.lab.artefacts import MirrorTree
from sandbox.lab.errors import LabError
from sandbox.lab.images import ImageStore
from tools import build

Make = Callable[[str], None]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """make("1.36.4"): prepare with programs of that version, without building anything."""
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(prepare, "KUBECTL", tmp_path / "checkout" / "bin" / "kubectl")
    monkeypatch.setattr(rootfs, "ensure", lambda report: tmp_path)
    monkeypatch.setattr(artefacts, "build_mirror", lambda _: MirrorTree(tmp_path, {}))
    monkeypatch.setattr(images, "build_images", lambda _: ImageStore(tmp_path, {}))

    def prepare_version(version: str) -> None:
        monkeypatch.setattr(
            build, "ensure", lambda names, report: {name: tmp_path / "cache" / name / version for name in names}
        )
        prepare.prepare()

    return prepare_version


def test_kubectl_is_at_a_fixed_path_for_every_version(make: Make, tmp_path: Path) -> None:
    for version in ("1.36.4", "1.36.4", "1.36.5"):
        make(version)
        assert list(prepare.KUBECTL.parent.iterdir()) == [prepare.KUBECTL]
        assert prepare.KUBECTL.readlink() == tmp_path / "cache" / "kubectl" / version


def _full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("module", "name"), [(rootfs, "ensure"), (artefacts, "build_mirror"), (images, "build_images")]
)
def test_a_full_disk_is_reported_with_the_cache_folder(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    monkeypatch.setattr(module, name, _full)
    with pytest.raises(LabError, match=f"disk of {tmp_path / 'cache'}; .*rebuilt when needed"):
        make("1.36.4")


def test_a_disk_that_fills_while_unpacking_debian_is_reported_with_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """debootstrap is a script that fails like tar; the folder that it started is removed."""
    debootstrap = tmp_path / "bin" / "debootstrap"
    debootstrap.parent.mkdir()
    debootstrap.write_text(
        '#!/bin/sh\nfor word; do case $word in *.new) mkdir -p "$word/debootstrap" ;; esac; done\n'
        'echo "tar: write error: No space left on device" >&2\nexit 1\n'
    )
    debootstrap.chmod(0o755)
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rootfs, "mirror", lambda targets: "http://debian")
    monkeypatch.setattr(rootfs.shell, "run", lambda *argv: "")
    monkeypatch.setattr(rootfs, "_environment", lambda: {"PATH": f"{debootstrap.parent}:/usr/bin:/bin"})
    with pytest.raises(OSError, match="No space left"):
        rootfs.ensure()
    assert {path.name for path in (tmp_path / "cache" / "rootfs").iterdir() if path.is_dir()} == {"packages"}
