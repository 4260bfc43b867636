"""The artefact mirror: a folder tree with the layout of upstream's downloads, built from the programs of tools/.

Checksums depend only on the programs: archives have fixed times, owners and order. They are gzip without
compression, because the mirror's readers are on the same machine; bzip2 has no uncompressed mode.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from cluster import versions
from cluster.artefacts import ARCH, KUBERNETES_PROGRAMS, catalogue
from cluster.locks import locked
from sandbox.lab import disk, releases
from tools import build, cache, manifest
from tools.build import Progress
from tools.oci import tar


@dataclass(frozen=True)
class MirrorTree:
    """A mirror that is ready to serve: `path`/<upstream host>/<path>, and Artefact.source -> SHA-256 in hex."""

    path: Path
    sha256: Mapping[str, str]


def _archives(etcd_version: str) -> dict[str, dict[str, str]]:
    """Return artefact name -> {path in its archive: program}, packed as upstream does."""
    top = f"etcd-v{etcd_version}-linux-{ARCH}"
    return {
        "etcd": {f"{top}/{name}": name for name in ("etcd", "etcdctl", "etcdutl")},
        "containerd": {f"bin/{name}": name for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        "cni-plugins": {f"./{name}": name for name in ("bridge", "host-local", "loopback", "portmap")},
        "crictl": {"crictl": "crictl"},
        "node-exporter": {f"node_exporter-{versions.NODE_EXPORTER}.linux-{ARCH}/node_exporter": "node_exporter"},
    }


# Artefacts whose upstream name differs from the program's name in tools/programs.toml.
_BARE = {"konnectivity-server": "proxy-server"}
_BZIP2 = ".bz2"


def programs(kubernetes: str) -> tuple[str, ...]:
    """Return the programs that the mirror needs for a cluster of this version of Kubernetes."""
    shared = (program for group in _shared().values() for program in group)
    return (*releases.of(KUBERNETES_PROGRAMS, kubernetes), *shared)


def _shared() -> dict[str, tuple[str, ...]]:
    """Return artefact name -> its programs, for artefacts that are the same for every version of Kubernetes."""
    artefacts = catalogue()
    archives = _archives(artefacts["etcd"].version)
    names = (name for name in artefacts if name not in KUBERNETES_PROGRAMS)
    return {name: tuple(archives[name].values()) if name in archives else (_BARE.get(name, name),) for name in names}


def build_mirror(kubernetes: str = versions.KUBERNETES, progress: Progress | None = None) -> MirrorTree:
    """Return the mirror for the pinned versions; build it unless the cache has it (a few milliseconds then).

    It offers this version of Kubernetes and the versions built before, so that a cluster can be upgraded between them.
    Raises what tools.build.ensure raises, and OSError when the cache cannot be written.
    """
    paths = build.ensure(programs(kubernetes), progress)
    layout: dict[str, str | dict[str, str]] = {}
    for release in releases.built(KUBERNETES_PROGRAMS):
        paths |= build.ensure(releases.of(KUBERNETES_PROGRAMS, release))
        for name, artefact in catalogue(release).items():
            bare = manifest.at(name, release) if name in KUBERNETES_PROGRAMS else _BARE.get(name, name)
            layout[artefact.source] = _archives(artefact.version).get(name) or bare
    key = cache.digest(json.dumps(layout, sort_keys=True), *(str(paths[name]) for name in sorted(paths)))[:16]
    home = cache.root() / "mirror" / key
    with locked(home.with_suffix(".lock")):
        if not home.exists():
            with disk.whole(home) as fresh:
                _make(fresh, layout, paths)
    sums: dict[str, str] = json.loads((home / "sha256.json").read_text())
    return MirrorTree(home / "tree", sums)


def _make(home: Path, layout: Mapping[str, str | dict[str, str]], paths: Mapping[str, Path]) -> None:
    sums = {}
    for source, content in layout.items():
        target = home / "tree" / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and source.endswith(_BZIP2):
            # The lowest level decompresses about three times as fast: 1.2 s for restic, against 3.3 s at the highest.
            target.write_bytes(bz2.compress(paths[content].read_bytes(), compresslevel=1))
        elif isinstance(content, str):
            os.link(paths[content], target)
        else:
            _archive(target, {name: paths[program] for name, program in content.items()})
        sums[source] = cache.file_digest(target)
    (home / "sha256.json").write_text(json.dumps(sums, indent=2) + "\n")


def _archive(target: Path, members: Mapping[str, Path]) -> None:
    with target.open("wb") as file, gzip.GzipFile("", "wb", 0, file, mtime=0) as stream:
        tar.write(cast("IO[bytes]", stream), (tar.Entry(name, path) for name, path in members.items()))
