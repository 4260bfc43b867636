"""Whether an image contains what a cluster's hosts need from it: packages, programs, features of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cluster.reading import read_text
from cluster.spec import Cluster
from components.image_needs import Image, Needs, of_cluster
from network.addresses import plan
from operations.doctor.model import Answer, Question, ok, unknown, wrong

_ROUTERS = "edge routers"
"""Their role installs what they need, and no cloud has them."""


def manifest_question(cluster: Cluster, file: Path) -> Question:
    """Return the question. file: what examples/images/manifest.py prints on a machine with the image, or `dpkg-query -W`."""
    return Question("images", "manifest", lambda: _answers(cluster, file), cloud=False)


def read_image(manifest: str) -> tuple[Image, bool]:
    """Return what an image contains, and whether that includes programs and the kernel.

    manifest: of examples/images/manifest.py; or lines of a package, with or without its architecture, a tab and a version.
    Errors: raises ValueError if it is neither.
    """
    if manifest.lstrip().startswith("{"):
        return Image.of_manifest(manifest), True
    lines = [line.split("\t") for line in manifest.splitlines() if line.strip()]
    packages = frozenset(line[0].partition(":")[0] for line in lines if len(line) == 2 and line[1].strip())
    if not packages:
        raise ValueError("neither a manifest of examples/images/manifest.py nor what `dpkg-query -W` prints")
    return Image(packages, frozenset(), frozenset()), False


def _answers(cluster: Cluster, file: Path) -> Iterator[Answer]:
    try:
        image, is_whole = read_image(read_text(file))
    except ValueError as error:
        yield unknown(f"{file}: {error}", "examples/images/manifest.py > manifest  # on a machine with the image")
        return
    needs = {kind: each for kind, each in of_cluster(cluster, plan(cluster)).items() if kind != _ROUTERS}
    for kind, each in needs.items():
        yield _answer(file, kind, each if is_whole else replace(each, programs=(), kernel=()), image)


def _answer(file: Path, kind: str, needs: Needs, image: Image) -> Answer:
    needed = ", ".join((*needs.packages, *needs.programs))
    if lacking := needs.missing(image):
        packages = [name for name in needs.packages if name not in image.packages]
        mend = f"apt-get install {' '.join(packages)}" if packages else "docs/how-to/images.md has a recipe"
        return wrong(f"{file} lacks {', '.join(lacking)}", mend, needed=needed, about=kind)
    counts = (
        f"{len(needs.packages)} packages, {len(needs.programs)} programs, {len(needs.kernel)} options of the kernel"
    )
    return ok(f"{file} has all: {counts}", needed, about=kind)
