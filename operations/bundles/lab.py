"""What a lab is made of, for a bundle: programs built here from pinned sources, and the root file system of its hosts.

Its images are made on the lab's machine from these programs, without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cluster.artefacts import Artefact
from cluster.bundles import Entry, Kind, Known
from cluster.spec import Cluster
from operations.bundles.needs import NeededArtefact
from operations.bundles.places import FolderPlace
from operations.bundles.stage import Stage
from sandbox.lab import rootfs, system_archive
from sandbox.lab.prepare import programs
from tools import build, manifest

Say = Callable[[str], None]


def needed_artefacts(labs: Sequence[Cluster]) -> tuple[NeededArtefact, ...]:
    """Return what the labs are made of, with Pulumi's engine."""
    if not labs:
        return ()
    clusters = tuple(sorted({lab.name for lab in labs}))
    needed = (name for lab in labs for name in programs(lab.spec.kubernetes.version))
    versions = {name: module.version for module in manifest.modules().values() for name in module.programs}
    built = [
        NeededArtefact(Kind.BUILT, Artefact(name, versions[name], f"lab/programs/{name}"), clusters, "", Known.BUILD)
        for name in dict.fromkeys(("pulumi", *needed))
    ]
    key = rootfs.key()
    system = Artefact("hosts-system", key, f"lab/systems/{key}.tar.gz")
    return (*built, NeededArtefact(Kind.SYSTEM, system, clusters, "", Known.BUILD))


def collect(things: Sequence[NeededArtefact], stage: Stage, say: Say = lambda _: None) -> tuple[Entry, ...]:
    """Build what the cache lacks, and bring everything into the stage. Raises FailedError, and LabError for the system."""
    built = [thing for thing in things if thing.kind is Kind.BUILT]
    paths = build.ensure([thing.artefact.name for thing in built], lambda event: say(str(event)))
    entries = []
    for thing in things:
        say(f"packing {thing.title}")
        if thing.kind is Kind.BUILT:
            sha256 = _take(paths[thing.artefact.name], thing, stage)
        else:
            with stage.folder_for_work() as work:
                system_archive.pack(rootfs.ensure(say), work / "system.tar.gz")
                sha256 = _take(work / "system.tar.gz", thing, stage)
        entries.append(replace(thing, pin=sha256).entry())
    return tuple(entries)


def _take(path: Path, thing: NeededArtefact, stage: Stage) -> str:
    return stage.take(FolderPlace(path.parent).chunks(path.name), thing.title, str(path), "")
