"""Where the hosts of a cloud download from, and with which checksums."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.document import parse
from cluster.spec import ClusterSpec

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
    """What a spec says; its checksums go before the published ones, for a mirror may serve builds of its own."""
    return ArtefactSource(spec.artefacts.mirror, {**published(), **spec.artefacts.sha256}, spec.artefacts.registry)


def without_checksum(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Downloads of hosts that no checksum is known of: no host would take them."""
    known = source_of(spec).sha256
    unused = _OF_OPERATORS if spec.has_backups else _OF_OPERATORS | _OF_BACKUPS
    wanted: Iterable[Artefact] = catalogue(spec.kubernetes.version).values()
    return tuple(each for each in wanted if each.name not in unused and each.source not in known)
