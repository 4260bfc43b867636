"""The output of `bundle` and `mirror`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from cli.output import console, errors, print_json
from cluster.bundles import Entry, Index, Kind, Known
from operations.bundles.debian.archive import MAIN, SECURITY
from operations.bundles.debian.host_packages import HostPackages
from operations.bundles.needs import NeededArtefact
from operations.mirrors.push import Pushed
from operations.mirrors.targets import Target

_MIB = 1 << 20
_UNCOMPARED = {
    Known.PLACE: "compared with no other list: --fetch reads the projects' own",
    Known.BUILD: "own builds: `check` warns of each",
}

_WORDS = {
    Kind.PROGRAM: "programs",
    Kind.PLUGIN: "plugins",
    Kind.IMAGE: "images",
    Kind.MANIFEST: "manifests",
    Kind.BUILT: "programs built here",
    Kind.SYSTEM: "root file systems of hosts",
    Kind.DEBIAN: "files of Debian's archive",
}
_PLACES = {
    Kind.PROGRAM: "a folder or a bucket",
    Kind.PLUGIN: "a folder or a bucket",
    Kind.IMAGE: "a registry",
    Kind.MANIFEST: "a folder or a bucket",
    Kind.BUILT: "cache: of a lab's machine",
    Kind.SYSTEM: "cache: of a lab's machine",
    Kind.DEBIAN: "a folder or a bucket",
}
"""Kind -> what `mirror push` fills with it."""


def would_bundle(
    path: Path,
    things: Sequence[NeededArtefact],
    hosts: Sequence[HostPackages],
    locks: Mapping[str, Path],
    *,
    as_json: bool,
) -> None:
    """Print what a dry run would collect."""
    if as_json:
        listed = [
            {"kind": each.kind, "source": each.source, "sha256": each.pin or None, "clusters": each.clusters}
            for each in things
        ]
        debian = [{"release": each.release, "packages": each.names, "clusters": each.clusters} for each in hosts]
        document = {"bundle": str(path), "made": False, "entries": listed, "debian": debian, "locks": _shown(locks)}
        print_json(document)
        return
    for each in things:
        console.print(f"{each.kind:<8} {each.source}  {each.pin or 'checksum not known yet'}", markup=False)
    for host in hosts:
        names = ", ".join(host.names)
        console.print(f"debian   {host.release}: a base system, {names}, and what they depend on", markup=False)
    also = f", and {_listed(locks)}" if locks else ""
    console.print(f"would write these {len(things)} to {path}{also}; nothing was written", markup=False)


def bundled(path: Path, index: Index, locks: Mapping[str, Path], *, as_json: bool) -> None:
    """Print what was written."""
    if as_json:
        listed = [entry.model_dump(mode="json", exclude={"needs", "media"}) for entry in index.entries]
        document = {"bundle": str(path), "made": True, "bytes": index.size, "entries": listed, "locks": _shown(locks)}
        print_json(document)
        return
    kinds = Counter(entry.kind for entry in index.entries)
    what = ", ".join(f"{kinds[kind]} {_WORDS[kind]}" for kind in Kind if kinds[kind])
    console.print(f"{path}: {what}, {index.size // _MIB} MiB, signed", markup=False)
    if locks:
        console.print(f"wrote {_listed(locks)}; review and commit", markup=False)
    for known, words in _UNCOMPARED.items():
        of_hosts = (entry for entry in index.entries if entry.kind not in (Kind.BUILT, Kind.SYSTEM))
        names = [entry.name for entry in of_hosts if entry.known is known]
        if names:
            errors.print(Text(f"{', '.join(names)}: {words}", style="yellow"))


def pushed(target: Target, result: Pushed, *, dry_run: bool, as_json: bool) -> None:
    """Print what a mirror got, or would get."""
    if as_json:
        print_json(
            {
                "target": target.place,
                "made": not dry_run,
                "uploaded": _sources(result.uploaded),
                "same": _sources(result.same),
                "other": _sources(result.other),
            }
        )
        return
    did = "would upload" if dry_run else "uploaded"
    for entry in result.uploaded:
        if entry.kind is not Kind.DEBIAN:
            console.print(f"{did} {entry.title}", markup=False)
    if files := sum(entry.kind is Kind.DEBIAN for entry in result.uploaded):
        console.print(f"{did} {files} {_WORDS[Kind.DEBIAN]}", markup=False)
    console.print(f"{target.place}: {len(result.uploaded)} new, {len(result.same)} there already", markup=False)
    if result.other:
        kinds = Counter(entry.kind for entry in result.other)
        errors.print(
            Text(", ".join(f"{count} {_WORDS[kind]} belong in {_PLACES[kind]}" for kind, count in kinds.items()))
        )


def serving(index: Index, address: str, port: int, certificate: Path | None) -> None:
    """Print what to write into specs. certificate: of TLS."""
    at = f"http{'s' if certificate else ''}://{address}:{port}"
    console.print(f"serving {len(index.entries)} files and images until interrupted; for specs:", markup=False)
    console.print(f"artefacts: {{mirror: '{at}', registry: '{address}:{port}'}}", markup=False)
    if certificate:
        console.print(f"  (workers accept {certificate} for images if registries.ca has its authority)", markup=False)
    if any(entry.kind is Kind.DEBIAN for entry in index.entries):
        console.print(f"provisioning: {{mirror: '{at}/{MAIN}', security: '{at}/{SECURITY}'}}", markup=False)


def _listed(locks: Mapping[str, Path]) -> str:
    return ", ".join(str(path) for path in locks.values())


def _shown(locks: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(path) for name, path in locks.items()}


def _sources(entries: Sequence[Entry]) -> list[str]:
    return [entry.source for entry in entries]
