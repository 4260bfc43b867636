"""Where the hosts of a cloud download from, and with which checksums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cluster import images
from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.document import parse
from cluster.spec import Cloud, ClusterSpec

_FILE = Path(__file__).with_name("checksums.yaml")
_OF_OPERATORS = frozenset({"kubectl"})
"""Programs that no host downloads."""
_OF_BACKUPS = frozenset({"restic"})
"""Programs that hosts download where an etcd has backups."""


@cache
def published() -> dict[str, str]:
    """`Artefact.source` -> SHA-256, as upstream publishes them."""
    return dict(parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data)


def source_of(spec: ClusterSpec) -> ArtefactSource:
    """The published checksums and the spec's. What replaces a published one, the spec calls a build of its own."""
    own = spec.artefacts
    known = {**published(), **images.published(), **own.sha256, **own.own_builds}
    return ArtefactSource(own.mirror, known, own.registry)


def without_checksum(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Downloads of hosts, and images, that no checksum is known of: no host would take them."""
    known = source_of(spec).sha256
    unused = _OF_OPERATORS if spec.has_backups else _OF_OPERATORS | _OF_BACKUPS
    wanted: Iterable[Artefact] = (*catalogue(spec.kubernetes.version).values(), *images.pulled(spec))
    return tuple(each for each in wanted if each.name not in unused and each.source not in known)


def told_checksums(spec: ClusterSpec) -> Iterator[str]:
    """What the spec must give checksums of before the cluster is built, a line each. A lab's come from what it serves."""
    unknown = () if spec.control_plane.cloud is Cloud.LAB else without_checksum(spec)
    if unknown:
        yield (
            f"no checksum is known of {len(unknown)} programs and images, and no host takes one without; write them into "
            "artefacts.sha256, as sha256sum or `crane digest` prints them:"
        )
    yield from (f"  {each.source}: <{'crane digest' if images.is_image(each) else 'sha256'}>" for each in unknown)
