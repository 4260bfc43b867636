"""Images without a builder: bytes depend only on content, and digests are correct."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from tools.oci import tar
from tools.oci.image import Image, write, write_layout


def image(file: Path) -> Image:
    below = (tar.Entry("etc", mode=0o755), tar.Entry("etc/name", file, 0o644))
    return Image((below, (tar.Entry("run", b"#!", 0o755),)), ("/run",), "65532:65532")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def blob(folder: Path, descriptor: Any) -> bytes:
    data = (folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (descriptor["digest"], descriptor["size"])
    return data


def names(layer: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r:") as archive:
        return archive.getnames()


def test_the_same_content_makes_the_same_bytes(tmp_path: Path) -> None:
    layouts = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.txt"
        file.write_text("x")
        file.chmod(0o600 if name == "a" else 0o777)
        write_layout(image(file), tmp_path / name)
        layouts.append(contents(tmp_path / name))
    assert layouts[0] == layouts[1]


def test_every_blob_of_a_layout_is_reachable_from_its_index(tmp_path: Path) -> None:
    (tmp_path / "name").write_text("x")
    digest = write_layout(image(tmp_path / "name"), tmp_path / "out")
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert [each["digest"] for each in index["manifests"]] == [digest]
    manifest = json.loads(blob(tmp_path / "out", index["manifests"][0]))
    config = json.loads(blob(tmp_path / "out", manifest["config"]))
    layers = [gzip.decompress(blob(tmp_path / "out", each)) for each in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]
    assert (config["config"]["User"], config["config"]["Entrypoint"]) == ("65532:65532", ["/run"])
    assert [names(each) for each in layers] == [["etc", "etc/name"], ["run"]]
    there = {path.name for path in (tmp_path / "out" / "blobs" / "sha256").iterdir()}
    assert len(there) == 4


def test_layers_for_this_machine_are_plain_tars(tmp_path: Path) -> None:
    (tmp_path / "name").write_text("x")
    manifest = json.loads(write(image(tmp_path / "name"), tmp_path / "blobs"))
    config = json.loads(blob(tmp_path, manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [each["digest"] for each in manifest["layers"]]
    assert names(blob(tmp_path, manifest["layers"][0])) == ["etc", "etc/name"]
