"""The images of the lab, written as blobs of a registry, and published to it.

`crane registry serve --disk FOLDER` keeps blobs as FOLDER/sha256/<digest>, which is where they are written
here; it keeps manifests in memory, so every start of it needs a `publish`.
"""

from __future__ import annotations

import http.client
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster import versions
from sandbox.lab import disk, releases
from sandbox.lab.errors import LabError
from sandbox.lab.shell import run, succeeds
from tools import build, cache, manifest
from tools.build import Progress
from tools.oci import image as oci
from tools.oci import tar


@dataclass(frozen=True)
class Image:
    """What goes into an image. `reference` as pods write it: registry host/repository:tag."""

    reference: str
    entries: tuple[tar.Entry, ...]
    entrypoint: tuple[str, ...]
    user: str = ""

    @property
    def whole(self) -> oci.Image:
        return oci.Image((self.entries,), self.entrypoint, self.user)


@dataclass(frozen=True)
class ImageStore:
    """Images ready to be served: `blobs` is the folder for the registry's --disk, `manifests` maps
    (repository, tag) to the manifest's JSON."""

    blobs: Path
    manifests: Mapping[tuple[str, str], bytes]


# Without these names nft lists a key as ". 17 . 53". A kube-proxy that starts anew and finds no ". udp . 53" among the
# keys adds that, and deletes the other as a leftover: the same one to the kernel, and with it every Service is gone.
_PROTOCOLS = b"tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n"


_SHARED = ("coredns", "proxy-agent")
_KUBE_PROXY = "kube-proxy"


def programs(kubernetes: str) -> tuple[str, ...]:
    """The programs of tools/ that the images are made of where a cluster of this version is to be."""
    return (*releases.of((_KUBE_PROXY,), kubernetes), *_SHARED)


def build_images(kubernetes: str | None = None, progress: Progress | None = None) -> ImageStore:
    """Every image that the lab's nodes run, made in the cache unless it is there (a few milliseconds then).

    kubernetes: the version whose kube-proxy there shall be beside those that were built before; None for these alone.
    Raises what tools.build.ensure raises, and LabError when nft, busybox or gcc is missing on this machine."""
    paths = build.ensure(programs(kubernetes) if kubernetes else _SHARED, progress)
    proxies = {each: releases.of((_KUBE_PROXY,), each)[0] for each in releases.built((_KUBE_PROXY,))}
    paths |= build.ensure(proxies.values())
    home = cache.root() / "images"
    with cache.locked(home / "lock"):
        blobs = home / "blobs"
        (blobs / "sha256").mkdir(parents=True, exist_ok=True)
        images = _images(paths, proxies, home)
        return ImageStore(blobs, {_place(image.reference): _write(image.whole, home) for image in images})


def keep(images: Mapping[str, oci.Image]) -> ImageStore:
    """Further images by reference, written beside the lab's own; what was written before costs nothing."""
    home = cache.root() / "images"
    with cache.locked(home / "lock"):
        return ImageStore(home / "blobs", {_place(name): _write(image, home) for name, image in images.items()})


def publish(store: ImageStore, registry: str) -> None:
    """Tell the registry at host:port, which serves store.blobs, about every image. Takes milliseconds.

    LabError when it refuses or cannot be reached."""
    connection = http.client.HTTPConnection(registry, timeout=10)
    try:
        for (repository, tag), text in store.manifests.items():
            connection.request("PUT", f"/v2/{repository}/manifests/{tag}", text, {"Content-Type": oci.MANIFEST_TYPE})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.HTTPStatus.CREATED:
                raise LabError(
                    f"the registry at {registry} refused {repository}:{tag}: {body.decode(errors='replace')}"
                )
    except OSError as error:
        raise LabError(f"the registry at {registry} cannot be reached: {error}") from error
    finally:
        connection.close()


def _images(paths: Mapping[str, Path], proxies: Mapping[str, str], home: Path) -> tuple[Image, ...]:
    kubernetes = "registry.k8s.io"
    agent = f"{kubernetes}/kas-network-proxy/proxy-agent:v{versions.KONNECTIVITY}"
    return (
        Image(f"{kubernetes}/pause:{versions.PAUSE}", (tar.Entry("pause", _pause(home)),), ("/pause",), "65535:65535"),
        Image(
            f"{kubernetes}/coredns/coredns:v{versions.COREDNS}",
            (tar.Entry("coredns", paths["coredns"]),),
            ("/coredns",),
        ),
        Image(agent, (tar.Entry("proxy-agent", paths["proxy-agent"]),), ("/proxy-agent",)),
        *(_kube_proxy(version, paths[program]) for version, program in proxies.items()),
        _busybox(),
    )


def _kube_proxy(version: str, program: Path) -> Image:
    entries = (
        tar.Entry("usr/local/bin/kube-proxy", program),
        tar.Entry("etc/protocols", _PROTOCOLS, 0o644),
        *_from_this_machine("nft", "usr/sbin/nft"),
    )
    return Image(f"registry.k8s.io/kube-proxy:v{version}", entries, ("/usr/local/bin/kube-proxy",))


def _place(reference: str) -> tuple[str, str]:
    """Repository and tag of what pods write as host/repository:tag."""
    repository, _, tag = reference.partition("/")[2].rpartition(":")
    return repository, tag


def _busybox() -> Image:
    return Image(f"docker.io/library/busybox:{versions.BUSYBOX}", busybox(), ("/bin/sh",))


def busybox() -> tuple[tar.Entry, ...]:
    """This machine's busybox with all its names, and what it wants around it. LabError when it has none."""
    program = _program("busybox")
    names = run(str(program), "--list").split()
    links = tuple(tar.Entry(f"bin/{name}", target="busybox") for name in names if name != "busybox")
    folders = (tar.Entry("tmp", mode=0o1777), tar.Entry("root", mode=0o700))
    # glibc asks only DNS for a host's name unless it is told to look into /etc/hosts first.
    switch = tar.Entry("etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
    return (*folders, switch, *_from_this_machine("busybox", "bin/busybox"), *links)


def _program(name: str) -> Path:
    found = shutil.which(name, path=oci.PATH)
    if not found:
        raise LabError(f"an image needs {name} of this machine, which has none: run `make setup`")
    return Path(found)


def _from_this_machine(name: str, target: str) -> tuple[tar.Entry, ...]:
    """A Debian program with the loader and the libraries that it is linked to, at the loader's own paths."""
    program = _program(name)
    # ldd fails on a program that is linked statically, which needs nothing.
    said = run("ldd", str(program)) if succeeds("ldd", str(program)) else ""
    libraries = sorted(set(re.findall(r"(/\S+) \(0x", said)))
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
    """The image's manifest; its blobs are written unless an image of the same recipe was before."""
    entries = (entry for layer in image.layers for entry in layer)
    recipe = home / "recipes" / cache.digest(repr(image), *map(_identity, entries))
    if recipe.exists():
        return recipe.read_bytes()
    # A plain tar, since its readers are on this machine.
    text = oci.write(image, home / "blobs")
    with disk.whole(recipe) as fresh:
        fresh.write_bytes(text)
    return text


def _identity(entry: tar.Entry) -> str:
    """What tells two states of a file apart without reading it."""
    if not isinstance(entry.content, Path):
        return ""
    status = entry.content.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
