"""This machine's cache, filled from a bundle: what a lab is made of, and provider plugins. Then `up` needs no network."""

from __future__ import annotations

from pathlib import Path

from cluster.bundles import BundleError, Entry, Kind
from cluster.locks import locked
from operations.bundles.opened import OpenBundle
from sandbox.lab import disk, rootfs, system_archive
from tools import cache, carried, manifest, releases


class CacheTarget:
    """The cache. Only what this checkout itself would use is taken: a bundle of another checkout is refused."""

    def has(self, entry: Entry, bundle: OpenBundle) -> bool:
        """Return whether the entry is there, as the bundle has it."""
        del bundle
        if entry.kind is Kind.SYSTEM:
            return _system(entry).is_dir()
        if entry.kind is Kind.BUILT:
            return _program(entry).exists() and carried.known().get(entry.name) == (entry.version, entry.sha256)
        path = _plugin(entry)
        return path.is_file() and cache.file_digest(path) == entry.sha256

    def take(self, entry: Entry, bundle: OpenBundle, work: Path) -> None:
        """Put an entry into its place, completely or not at all. A program is from then on used in place of a build."""
        with locked(cache.root() / "bundles" / "cache.lock"):
            if entry.kind is Kind.SYSTEM:
                bundle.extract(entry.sha256, work / "system.tar.gz")
                system_archive.unpack(work / "system.tar.gz", _system(entry))
                return
            is_program = entry.kind is Kind.BUILT
            with disk.whole(_program(entry) if is_program else _plugin(entry)) as fresh:
                bundle.extract(entry.sha256, fresh)
                fresh.chmod(0o755 if is_program else 0o644)
            if is_program:
                carried.record({entry.name: (entry.version, entry.sha256)})
                releases.keep("bundle")


def _plugin(entry: Entry) -> Path:
    return cache.root() / "plugins" / entry.source.rpartition("/")[2]


def _program(entry: Entry) -> Path:
    versions = {name: module.version for module in manifest.modules().values() for name in module.programs}
    if versions.get(entry.name) != entry.version:
        raise BundleError(
            f"the bundle has {entry.title}, but this checkout builds {versions.get(entry.name, 'no such program')}; use the checkout "
            "that made the bundle"
        )
    return carried.path(entry.name, entry.version, entry.sha256)


def _system(entry: Entry) -> Path:
    if entry.version != rootfs.key():
        raise BundleError(
            f"the bundle has the hosts' system {entry.version}, but this checkout's is {rootfs.key()}; use the checkout that made "
            "the bundle"
        )
    return cache.root() / "rootfs" / entry.version
