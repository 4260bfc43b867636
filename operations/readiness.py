"""What must be there before a cloud is asked for anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster.artefacts import Artefact
from cluster.sources import without_checksum
from cluster.spec import Cluster
from stacks.credentials import missing


class NotReadyError(Exception):
    """Credentials or checksums are missing; the text says all of them, and what works without."""

    def __init__(self, cluster: str, lacking: list[str]) -> None:
        listed = "\n  ".join(lacking)
        super().__init__(
            f"{cluster} can't be reached yet:\n  {listed}\n"
            f"  without an account, see whether it would work: ./menagerie validate {cluster}"
        )


def refuse_unready(cluster: Cluster, environment: Mapping[str, str], *, declares: bool = True) -> None:
    """NotReadyError unless everything is there. declares: whether resources will be declared, or only deleted."""
    if cluster.is_lab:
        return
    lacking = list(missing(cluster.spec.control_plane.cloud, environment))
    if declares:
        lacking += _checksums(cluster)
    if lacking:
        raise NotReadyError(cluster.name, lacking)


def _checksums(cluster: Cluster) -> Iterator[str]:
    unknown = without_checksum(cluster.spec)
    if unknown:
        yield (
            f"no checksum is known of {len(unknown)} programs, and no host takes one without; "
            "write them into artefacts.sha256:"
        )
    yield from (f"  {_line(each)}" for each in unknown)


def _line(artefact: Artefact) -> str:
    return f"{artefact.source}: <sha256>"
