"""The lab's images: build their blobs for the registry, and publish them to it.

`crane registry serve --disk FOLDER` keeps blobs as FOLDER/sha256/<digest>, and this module writes them there. It keeps
manifests in memory only, so run `publish` after every start of the registry.
"""

from __future__ import annotations

import http.client
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster import versions
from cluster.locks import locked
from sandbox.lab import disk, releases
from sandbox.lab.errors import LabError
from sandbox.lab.shell import run, succeeds
from tools import build, cache, manifest
from tools.build import Progress
from tools.oci import image as oci
from tools.oci import tar


@dataclass(frozen=True)
class LabImage:
    """The contents of an image. `reference` as pods write it: registry host/repository:tag."""

    reference: str
    entries: tuple[tar.Entry, ...]
    entrypoint: tuple[str, ...]
    user: str = ""

    @property
    def whole(self) -> oci.Image:
        return oci.Image((self.entries,), self.entrypoint, self.user)


@dataclass(frozen=True)
class ImageStore:
    """Images that are ready to serve.

    blobs: folder for the registry's --disk. manifests: (repository, tag) -> the manifest's JSON.
    """

    blobs: Path
    manifests: Mapping[tuple[str, str], bytes]


# Without these names nft lists a key as ". 17 . 53". A kube-proxy that restarts and finds no ". udp . 53" among the
# keys adds that key and deletes the other as a leftover. To the kernel both are the same, so every Service is lost.
_PROTOCOLS = b"tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n"


_SHARED = ("coredns", "metrics-server", "proxy-agent")
_KUBE_PROXY = "kube-proxy"


def programs(kubernetes: str) -> tuple[str, ...]:
    """Return the programs of tools/ that the images need for a cluster of this version of Kubernetes."""
    return (*releases.of((_KUBE_PROXY,), kubernetes), *_SHARED)


def build_images(kubernetes: str | None = None, progress: Progress | None = None) -> ImageStore:
    """Return every image that the lab's nodes run; build it unless the cache has it (a few milliseconds then).

    kubernetes: version whose kube-proxy to add to those built before; None for only those.
    Raises what tools.build.ensure raises, and LabError when nft, busybox or gcc is missing on this machine.
    """
    paths = build.ensure(programs(kubernetes) if kubernetes else _SHARED, progress)
    proxies = {version: releases.of((_KUBE_PROXY,), version)[0] for version in releases.built((_KUBE_PROXY,))}
    paths |= build.ensure(proxies.values())
    home = cache.root() / "images"
    with locked(home / "lock"):
        blobs = home / "blobs"
        (blobs / "sha256").mkdir(parents=True, exist_ok=True)
        images = _images(paths, proxies, home)
        return ImageStore(blobs, {_repository_and_tag(image.reference): _write(image.whole, home) for image in images})


def keep(images: Mapping[str, oci.Image]) -> ImageStore:
    """Write further images, given by reference, next to the lab's own. Images written before take no time."""
    home = cache.root() / "images"
    with locked(home / "lock"):
        return ImageStore(
            home / "blobs", {_repository_and_tag(name): _write(image, home) for name, image in images.items()}
        )


def publish(store: ImageStore, registry: str) -> None:
    """Publish every image to the registry at host:port, which serves store.blobs. Takes milliseconds.

    Raises LabError when the registry refuses or cannot be reached.
    """
    connection = http.client.HTTPConnection(registry, timeout=10)
    try:
        for (repository, tag), text in store.manifests.items():
            connection.request("PUT", f"/v2/{repository}/manifests/{tag}", text, {"Content-Type": oci.MANIFEST_TYPE})
            response = connection.getresponse()
            body = response.read()
            if response.status != http.HTTPStatus.CREATED:
                raise LabError(
                    f"the registry at {registry} refused {repository}:{tag}: {body.decode(errors='replace')}"
                )
    except OSError as error:
        raise LabError(f"the registry at {registry} cannot be reached: {error}") from error
    finally:
        connection.close()


def _images(paths: Mapping[str, Path], proxies: Mapping[str, str], home: Path) -> tuple[LabImage, ...]:
    kubernetes = "registry.k8s.io"
    agent = f"{kubernetes}/kas-network-proxy/proxy-agent:v{versions.KONNECTIVITY}"
    return (
        LabImage(
            f"{kubernetes}/pause:{versions.PAUSE}", (tar.Entry("pause", _pause(home)),), ("/pause",), "65535:65535"
        ),
        LabImage(
            f"{kubernetes}/coredns/coredns:v{versions.COREDNS}",
            (tar.Entry("coredns", paths["coredns"]),),
            ("/coredns",),
        ),
        LabImage(
            f"{kubernetes}/metrics-server/metrics-server:v{versions.METRICS_SERVER}",
            (tar.Entry("metrics-server", paths["metrics-server"]),),
            ("/metrics-server",),
            "65534",
        ),
        LabImage(agent, (tar.Entry("proxy-agent", paths["proxy-agent"]),), ("/proxy-agent",)),
        *(_kube_proxy(version, paths[program]) for version, program in proxies.items()),
        _busybox(),
    )


def _kube_proxy(version: str, program: Path) -> LabImage:
    entries = (
        tar.Entry("usr/local/bin/kube-proxy", program),
        tar.Entry("etc/protocols", _PROTOCOLS, 0o644),
        *_from_this_machine("nft", "usr/sbin/nft"),
    )
    return LabImage(f"registry.k8s.io/kube-proxy:v{version}", entries, ("/usr/local/bin/kube-proxy",))


def _repository_and_tag(reference: str) -> tuple[str, str]:
    """Split host/repository:tag, as pods write it, into repository and tag."""
    repository, _, tag = reference.partition("/")[2].rpartition(":")
    return repository, tag


def _busybox() -> LabImage:
    return LabImage(f"docker.io/library/busybox:{versions.BUSYBOX}", busybox(), ("/bin/sh",))


def busybox() -> tuple[tar.Entry, ...]:
    """Return this machine's busybox with all its names and the files it needs. Raises LabError when it is not installed."""
    program = _program("busybox")
    names = run(str(program), "--list").split()
    links = tuple(tar.Entry(f"bin/{name}", target="busybox") for name in names if name != "busybox")
    folders = (tar.Entry("tmp", mode=0o1777), tar.Entry("root", mode=0o700))
    # glibc resolves host names by DNS only, unless this file puts /etc/hosts first.
    switch = tar.Entry("etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
    return (*folders, switch, *_from_this_machine("busybox", "bin/busybox"), *links)


def _program(name: str) -> Path:
    path = shutil.which(name, path=oci.PATH)
    if not path:
        raise LabError(f"an image needs {name}, which is not installed on this machine: run `make setup`")
    return Path(path)


def _from_this_machine(name: str, target: str) -> tuple[tar.Entry, ...]:
    """Return a Debian program with its loader and shared libraries, at the paths where the loader looks for them."""
    program = _program(name)
    # ldd fails on a statically linked program, which needs no libraries.
    output = run("ldd", str(program)) if succeeds("ldd", str(program)) else ""
    libraries = sorted(set(re.findall(r"(/\S+) \(0x", output)))
    files = tuple(tar.Entry(library.lstrip("/"), Path(library).resolve()) for library in libraries)
    return (tar.Entry(target, program.resolve()), *files)


def _pause(home: Path) -> Path:
    source = manifest.TOOLS / "pause" / "pause.c"
    target = home / f"pause-{cache.file_digest(source)[:16]}"
    if not target.exists():
        with disk.whole(target) as fresh:
            run("gcc", "-Os", "-static", "-s", "-Wall", "-Werror", "-o", str(fresh), str(source))
    return target


def _write(image: oci.Image, home: Path) -> bytes:
    """Return the image's manifest; write its blobs unless an image with the same recipe was written before."""
    entries = (entry for layer in image.layers for entry in layer)
    recipe = home / "recipes" / cache.digest(repr(image), *map(_identity, entries))
    if recipe.exists():
        return recipe.read_bytes()
    # An uncompressed tar, because its readers are on this machine.
    text = oci.write(image, home / "blobs")
    with disk.whole(recipe) as fresh:
        fresh.write_bytes(text)
    return text


def _identity(entry: tar.Entry) -> str:
    """Return a text that changes with the file's state, without reading the file."""
    if not isinstance(entry.content, Path):
        return ""
    status = entry.content.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
