"""The provider plugin of a cluster's cloud: fetched by us and verified before it is unpacked, never by the engine.

Kept in the cache, in a folder named by the archive's SHA-256, which becomes the engine's only folder of plugins.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import urllib3

from cluster.artefacts import Artefact
from cluster.errors import FailedError
from cluster.plugins import plugin_of, this_system
from cluster.sources import source_of
from cluster.spec import Cluster
from tools import cache

_CHUNK = 1 << 20
_TIMEOUT = urllib3.Timeout(connect=20, read=120)


def needed(cluster: Cluster, environment: Mapping[str, str]) -> Artefact | None:
    """The plugin that a run of the engine starts on this machine; None for a lab, and where one is served already."""
    wanted = plugin_of(cluster.spec.control_plane.cloud, this_system())
    served = environment.get("PULUMI_DEBUG_PROVIDERS", "").split(",")
    return None if wanted is None or any(each.partition(":")[0] == wanted.name for each in served) else wanted


def pin_of(cluster: Cluster, wanted: Artefact) -> str:
    """The SHA-256 that its archive must have, "" where none is known."""
    return source_of(cluster.spec).sha256.get(wanted.source, "")


def how_to_pin(wanted: Artefact) -> str:
    """For a plugin without a checksum."""
    return (
        f"no checksum is known of the provider plugin {wanted.name} {wanted.version}, which is given your credentials; fetch "
        f"https://{wanted.source}, compare `sha256sum` with the digest on the release's page, and write it into "
        f"artefacts.sha256:\n    {wanted.source}: <sha256>"
    )


def described(cluster: Cluster) -> str:
    """What a plan says of the plugin; "" where there is none."""
    wanted = needed(cluster, os.environ)
    return f"provider plugin {wanted.name} {wanted.version}, sha256 {pin_of(cluster, wanted)}" if wanted else ""


def provide(cluster: Cluster, folder: Path, report: Callable[[str], None]) -> None:
    """Make `folder`, the engine's folder of plugins, one that holds the cluster's plugin and nothing else.

    Raises FailedError, with nothing installed.
    """
    wanted = needed(cluster, os.environ)
    if wanted is None:
        return
    program = f"pulumi-resource-{wanted.name}"
    if stray := shutil.which(program):
        raise FailedError(f"the engine would start {stray}, which nobody has verified; take it off PATH", code="plugin")
    pin = pin_of(cluster, wanted)
    if not pin:
        raise FailedError(how_to_pin(wanted), code="plugin")
    kept = cache.root() / "plugins" / pin
    with cache.locked(cache.root() / "plugins.lock", lambda: report("another process fetches the plugin, waiting")):
        if not kept.is_dir():
            _install(cluster, wanted, pin, kept, report)
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)  # what an engine fetched by itself before
    if not folder.is_symlink() or folder.readlink() != kept:
        folder.unlink(missing_ok=True)
        folder.symlink_to(kept)


def _install(cluster: Cluster, wanted: Artefact, pin: str, kept: Path, report: Callable[[str], None]) -> None:
    """Whole or not at all: unpacked beside its place, and only what has the right sum."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = kept.parent / Path(wanted.source).name
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".new-") as new:
        archive = given if given.is_file() else Path(new, "archive")
        if archive is not given:
            _download(source_of(cluster.spec).url(wanted), archive, given, report)
        # Of the file that is unpacked, not of bytes on their way to it.
        found = cache.file_digest(archive)
        if found != pin:
            raise FailedError(
                f"{given.name} from {given if archive is given else source_of(cluster.spec).url(wanted)} has SHA-256 {found}, "
                f"and artefacts.sha256 says {pin}; nothing was installed. Take neither for right before you know why",
                code="plugin",
            )
        unpacked = Path(new, pin)
        _unpack(archive, unpacked / f"resource-{wanted.name}-v{wanted.version}", f"pulumi-resource-{wanted.name}")
        unpacked.rename(kept)


def _download(url: str, target: Path, given: Path, report: Callable[[str], None]) -> None:
    report(f"fetching {url}")
    way_out = f"fetch it yourself, and put it at {given}"
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT) as http:
            answer = http.request("GET", url, preload_content=False)
            if answer.status != 200:
                raise FailedError(f"{url} answers {answer.status} {answer.reason}; {way_out}", code="plugin")
            with target.open("wb") as file:
                shutil.copyfileobj(answer, file, _CHUNK)
    except urllib3.exceptions.HTTPError as error:
        raise FailedError(f"{url} can't be fetched: {error}; {way_out}", code="plugin") from None


def _unpack(archive: Path, folder: Path, program: str) -> None:
    """Plain files alone, by their names without folders' ways out."""
    folder.mkdir(parents=True)
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                if member.isfile() and "/" not in member.name.removeprefix("./"):
                    content = packed.extractfile(member)
                    assert content is not None
                    with (folder / member.name.removeprefix("./")).open("wb") as file:
                        shutil.copyfileobj(content, file, _CHUNK)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FailedError(f"{archive.name} is no archive of a plugin: {error}", code="plugin") from None
    if not (folder / program).is_file():
        raise FailedError(f"{archive.name} holds no {program}", code="plugin")
    (folder / program).chmod(0o755)
