"""Images of the suite: what pods find in them."""

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
def made(tmp_path: Path) -> dict[str, Image]:
    paths = {}
    for name in (*stand_ins.PROGRAMS, *stand_ins.FILES, "shell"):
        paths[name] = tmp_path / name
        paths[name].write_text(name)
    return stand_ins.recipes(paths, (tar.Entry("bin/sh", target="dash"),), (tar.Entry("bin/sh", target="busybox"),))


def root(made: Image, blobs: Path) -> dict[str, tarfile.TarInfo]:
    """Files of an image by name, those of higher layers in the place of lower ones."""
    found: dict[str, tarfile.TarInfo] = {}
    for layer in json.loads(image.write(made, blobs))["layers"]:
        data = (blobs / layer["digest"].replace(":", "/")).read_bytes()
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            found |= {member.name: member for member in archive}
    return found


def test_agnhost_has_what_tests_look_for_in_it(made: dict[str, Image], tmp_path: Path) -> None:
    files = root(made[AGNHOST], tmp_path / "blobs")
    assert {"agnhost", "coredns", "localhost.crt", "localhost.key", "bin/sh", "uploads"} <= files.keys()
    assert files["agnhost-2"].linkname == "agnhost"
    assert files["tmp"].mode == 0o1777
    assert (made[AGNHOST].entrypoint, made[AGNHOST].command) == (("/agnhost",), ("pause",))


def test_the_user_whom_a_test_expects_in_the_image_is_there(made: dict[str, Image]) -> None:
    texts = {entry.name: entry.content for layer in made[AGNHOST].layers for entry in layer}
    assert b"user-defined-in-image:x:1000:1000:" in bytes(texts["etc/passwd"])  # type: ignore[arg-type]
    assert b"group-defined-in-image:x:50000:user-defined-in-image\n" in bytes(texts["etc/group"])  # type: ignore[arg-type]


def test_the_program_that_shows_its_user_has_the_bits_that_a_test_takes_from_it(
    made: dict[str, Image], tmp_path: Path
) -> None:
    files = root(made["registry.k8s.io/e2e-test-images/nonewprivs:1.4"], tmp_path / "blobs")
    assert files["usr/local/bin/nnp"].mode == 0o6755


def test_the_first_shell_beside_busybox_passes_on_variables_of_any_name(made: dict[str, Image], tmp_path: Path) -> None:
    files = root(made["registry.k8s.io/e2e-test-images/busybox:1.37.0-1"], tmp_path / "blobs")
    assert files["usr/local/bin/sh"].size == len("shell")
    assert files["bin/sh"].linkname == "busybox"


def test_kitten_says_that_it_stands_in(made: dict[str, Image], tmp_path: Path) -> None:
    kitten = made["registry.k8s.io/e2e-test-images/kitten:1.8"]
    texts = {entry.name: entry.content for layer in kitten.layers for entry in layer}
    release = bytes(texts["etc/os-release"])  # type: ignore[arg-type]
    assert b"stand-in" in release
    assert b"Alpine Linux" in release
    assert {"kitten.jpg", "data.json", "agnhost"} <= root(kitten, tmp_path / "blobs").keys()


def test_what_a_pod_names_without_a_command_runs_something(made: dict[str, Image]) -> None:
    assert [name for name, each in made.items() if not (*each.entrypoint, *each.command)] == []


def test_the_labs_own_pause_is_the_one_that_the_suite_names() -> None:
    assert versions.PAUSE == "3.10.2"
