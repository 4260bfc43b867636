"""The artefact mirror: a folder tree with the layout of upstream's downloads, made from the programs of tools/.

Checksums depend on the programs alone: archives are written with fixed times, owners and order. They are
gzip without compression, since the mirror's readers are on the same machine.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from cluster.artefacts import ARCH, catalogue
from lab import disk, tar
from tools import build, cache
from tools.build import Progress


@dataclass(frozen=True)
class MirrorTree:
    """A mirror ready to be served: `path`/<upstream host>/<path>, and Artefact.source -> SHA-256 in hex."""

    path: Path
    sha256: Mapping[str, str]


def _archives(etcd_version: str) -> dict[str, dict[str, str]]:
    """Artefact name -> {path in its archive: program}, as upstream packs them."""
    top = f"etcd-v{etcd_version}-linux-{ARCH}"
    return {
        "etcd": {f"{top}/{name}": name for name in ("etcd", "etcdctl", "etcdutl")},
        "containerd": {f"bin/{name}": name for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        "cni-plugins": {f"./{name}": name for name in ("bridge", "host-local", "loopback", "portmap")},
        "crictl": {"crictl": "crictl"},
    }


# Artefacts that upstream publishes under another name than their program has in tools/programs.toml.
_BARE = {"konnectivity-server": "proxy-server"}


def programs() -> tuple[str, ...]:
    """The programs that the mirror is made of."""
    known = catalogue()
    archives = _archives(known["etcd"].version)
    names = (archives[name].values() if name in archives else (_BARE.get(name, name),) for name in known)
    return tuple(program for group in names for program in group)


def build_mirror(progress: Progress | None = None) -> MirrorTree:
    """The mirror for the pinned versions, made in the cache unless it is there (a few milliseconds then).

    Raises what tools.build.ensure raises, and OSError when the cache cannot be written."""
    paths = build.ensure(programs(), progress)
    known = catalogue()
    layout = {
        artefact.source: _archives(artefact.version).get(name) or _BARE.get(name, name)
        for name, artefact in known.items()
    }
    key = cache.digest(json.dumps(layout, sort_keys=True), *(str(paths[name]) for name in sorted(paths)))[:16]
    home = cache.root() / "mirror" / key
    with cache.locked(home.with_suffix(".lock")):
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
        if isinstance(content, str):
            os.link(paths[content], target)
        else:
            _archive(target, {name: paths[program] for name, program in content.items()})
        sums[source] = cache.file_digest(target)
    (home / "sha256.json").write_text(json.dumps(sums, indent=2) + "\n")


def _archive(target: Path, members: Mapping[str, Path]) -> None:
    with target.open("wb") as file, gzip.GzipFile("", "wb", 0, file, mtime=0) as stream:
        tar.write(cast("IO[bytes]", stream), (tar.Entry(name, path) for name, path in members.items()))
