"""The provider plugin of a cluster's cloud: Menagerie downloads it, not the engine, and verifies it before unpacking.

It is cached in a folder named by the archive's SHA-256, which becomes the engine's only plugin folder.
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
from cluster.locks import locked
from cluster.plugins import plugin_of, this_system
from cluster.sources import source_of
from cluster.spec import Cluster
from tools import cache

_CHUNK = 1 << 20
_TIMEOUT = urllib3.Timeout(connect=20, read=120)


def needed(cluster: Cluster, environment: Mapping[str, str]) -> Artefact | None:
    """Return the plugin that the engine needs on this machine; None for a lab, or if one is already running."""
    plugin = plugin_of(cluster.spec.control_plane.cloud, this_system())
    served = environment.get("PULUMI_DEBUG_PROVIDERS", "").split(",")
    return None if plugin is None or any(server.partition(":")[0] == plugin.name for server in served) else plugin


def pin_of(cluster: Cluster, plugin: Artefact) -> str:
    """Return the pinned SHA-256 of the plugin's archive, "" if there is none."""
    return source_of(cluster.spec).sha256.get(plugin.source, "")


def how_to_pin(plugin: Artefact) -> str:
    """Return instructions for a plugin without a checksum."""
    return (
        f"no checksum is pinned for the provider plugin {plugin.name} {plugin.version}, which gets your credentials; `bundle "
        f"--fetch` verifies and pins it. By hand: download https://{plugin.source}, compare `sha256sum` with the digest on the "
        f"release's page, and add it to artefacts.sha256:\n    {plugin.source}: <sha256>"
    )


def described(cluster: Cluster) -> str:
    """Return the plugin's line in a plan, "" if there is no plugin."""
    plugin = needed(cluster, os.environ)
    return f"provider plugin {plugin.name} {plugin.version}, sha256 {pin_of(cluster, plugin)}" if plugin else ""


def provide(cluster: Cluster, folder: Path, report: Callable[[str], None]) -> None:
    """Make the engine's plugin folder contain the cluster's plugin and nothing else.

    Raises FailedError; nothing is installed then.
    """
    plugin = needed(cluster, os.environ)
    if plugin is None:
        return
    program = f"pulumi-resource-{plugin.name}"
    if stray := shutil.which(program):
        raise FailedError(f"the engine would start {stray}, which is not verified; remove it from PATH", code="plugin")
    pin = pin_of(cluster, plugin)
    if not pin:
        raise FailedError(how_to_pin(plugin), code="plugin")
    kept = cache.root() / "plugins" / pin
    with locked(
        cache.root() / "plugins.lock", busy=lambda: report("waiting for another process that downloads the plugin")
    ):
        if not kept.is_dir():
            _install(cluster, plugin, pin, kept, report)
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)  # what an engine downloaded earlier
    if not folder.is_symlink() or folder.readlink() != kept:
        folder.unlink(missing_ok=True)
        folder.symlink_to(kept)


def _install(cluster: Cluster, plugin: Artefact, pin: str, kept: Path, report: Callable[[str], None]) -> None:
    """Install atomically: verify the checksum, unpack next to the final place, then rename."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    own_copy = kept.parent / Path(plugin.source).name
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".new-") as new:
        archive = own_copy if own_copy.is_file() else Path(new, "archive")
        if archive is not own_copy:
            _download(source_of(cluster.spec).url(plugin), archive, own_copy, report)
        # The digest of the file on disk that is unpacked, not of the download stream.
        digest = cache.file_digest(archive)
        if digest != pin:
            raise FailedError(
                f"{own_copy.name} from {own_copy if archive is own_copy else source_of(cluster.spec).url(plugin)} has SHA-256 {digest}, "
                f"but artefacts.sha256 has {pin}; nothing was installed. Trust neither until you know why they differ",
                code="plugin",
            )
        unpacked = Path(new, pin)
        _unpack(archive, unpacked / f"resource-{plugin.name}-v{plugin.version}", f"pulumi-resource-{plugin.name}")
        unpacked.rename(kept)


def _download(url: str, target: Path, own_copy: Path, report: Callable[[str], None]) -> None:
    report(f"downloading {url}")
    way_out = f"download it yourself and put it at {own_copy}"
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT) as http:
            response = http.request("GET", url, preload_content=False)
            if response.status != 200:
                raise FailedError(f"{url} responds with {response.status} {response.reason}; {way_out}", code="plugin")
            with target.open("wb") as file:
                shutil.copyfileobj(response, file, _CHUNK)
    except urllib3.exceptions.HTTPError as error:
        raise FailedError(f"{url} can't be downloaded: {error}; {way_out}", code="plugin") from None


def _unpack(archive: Path, folder: Path, program: str) -> None:
    """Unpack only plain files at the top level: no paths, so none can leave the folder."""
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
        raise FailedError(f"{archive.name} is not a plugin archive: {error}", code="plugin") from None
    if not (folder / program).is_file():
        raise FailedError(f"{archive.name} does not contain {program}", code="plugin")
    (folder / program).chmod(0o755)
