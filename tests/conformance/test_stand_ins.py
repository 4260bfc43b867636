"""Stand-in images of the suite: what pods find in them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from cluster import versions
from tests.conformance import stand_ins
from tools.oci import image, tar
from tools.oci.image import Image

AGNHOST = f"registry.k8s.io/e2e-test-images/agnhost:{stand_ins.AGNHOST}"


@pytest.fixture
def images(tmp_path: Path) -> dict[str, Image]:
    paths = {}
    for name in (*stand_ins.PROGRAMS, *stand_ins.FILES, "shell"):
        paths[name] = tmp_path / name
        paths[name].write_text(name)
    return stand_ins.recipes(paths, (tar.Entry("bin/sh", target="dash"),), (tar.Entry("bin/sh", target="busybox"),))


def root(stand_in: Image, blobs: Path) -> dict[str, tarfile.TarInfo]:
    """Return files of an image by name; those of higher layers replace those of lower ones."""
    files: dict[str, tarfile.TarInfo] = {}
    for layer in json.loads(image.write(stand_in, blobs))["layers"]:
        data = (blobs / layer["digest"].replace(":", "/")).read_bytes()
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files |= {member.name: member for member in archive}
    return files


def test_agnhost_has_what_tests_look_for_in_it(images: dict[str, Image], tmp_path: Path) -> None:
    files = root(images[AGNHOST], tmp_path / "blobs")
    assert {"agnhost", "coredns", "localhost.crt", "localhost.key", "bin/sh", "uploads"} <= files.keys()
    assert files["agnhost-2"].linkname == "agnhost"
    assert files["tmp"].mode == 0o1777
    assert (images[AGNHOST].entrypoint, images[AGNHOST].command) == (("/agnhost",), ("pause",))


def test_the_image_has_the_user_that_a_test_expects(images: dict[str, Image]) -> None:
    texts = {entry.name: entry.content for layer in images[AGNHOST].layers for entry in layer}
    assert b"user-defined-in-image:x:1000:1000:" in bytes(texts["etc/passwd"])  # type: ignore[arg-type]
    assert b"group-defined-in-image:x:50000:user-defined-in-image\n" in bytes(texts["etc/group"])  # type: ignore[arg-type]


def test_the_program_that_shows_its_user_has_the_setuid_bits_that_a_test_disables(
    images: dict[str, Image], tmp_path: Path
) -> None:
    files = root(images["registry.k8s.io/e2e-test-images/nonewprivs:1.4"], tmp_path / "blobs")
    assert files["usr/local/bin/nnp"].mode == 0o6755


def test_the_first_shell_on_path_passes_on_variables_of_any_name(images: dict[str, Image], tmp_path: Path) -> None:
    files = root(images["registry.k8s.io/e2e-test-images/busybox:1.37.0-1"], tmp_path / "blobs")
    assert files["usr/local/bin/sh"].size == len("shell")
    assert files["bin/sh"].linkname == "busybox"


def test_kitten_says_that_it_is_a_stand_in(images: dict[str, Image], tmp_path: Path) -> None:
    kitten = images["registry.k8s.io/e2e-test-images/kitten:1.8"]
    texts = {entry.name: entry.content for layer in kitten.layers for entry in layer}
    release = bytes(texts["etc/os-release"])  # type: ignore[arg-type]
    assert b"stand-in" in release
    assert b"Alpine Linux" in release
    assert {"kitten.jpg", "data.json", "agnhost"} <= root(kitten, tmp_path / "blobs").keys()


def test_every_image_runs_something_without_a_command(images: dict[str, Image]) -> None:
    assert [name for name, image in images.items() if not (*image.entrypoint, *image.command)] == []


def test_the_labs_own_pause_is_the_one_that_the_suite_uses() -> None:
    assert versions.PAUSE == "3.10.2"
