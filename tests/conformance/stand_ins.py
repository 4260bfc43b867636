"""Images that the suite's pods use, built from programs of this release and Debian packages without asking a registry.

docs/how-to/conformance.md lists the differences from upstream's. The list of images follows from
test/utils/image/manifest.go and from what tests with [Conformance] in their name use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.locks import locked
from sandbox.lab import disk, images
from sandbox.lab.images import ImageStore
from tools import build, cache, files
from tools.oci import debian, tar
from tools.oci.image import Image
from tools.oci.tar import Entry

PROGRAMS = ("agnhost", "nonewprivs", "sample-apiserver", "coredns", "etcd")
FILES = (
    "agnhost-localhost.crt",
    "agnhost-localhost.key",
    "kitten.jpg",
    "kitten.json",
    "nautilus.jpg",
    "nautilus.json",
)
DEBIAN = (
    "bash",
    "bash-static",
    "bind9-dnsutils",
    "coreutils",
    "curl",
    "dash",
    "findutils",
    "grep",
    "hostname",
    "iperf",
    "iproute2",
    "libc-bin",
    "mawk",
    "netcat-openbsd",
    "procps",
    "sed",
    "usr-is-merged",  # otherwise packages that need a merged /usr would install the program that merges it, and Perl
    "util-linux",
    "wget",
)
"""What upstream's agnhost has from Alpine. /bin/sh is dash: tests compare a shell's messages, and those of bash differ."""

AGNHOST, AGNHOST_BEFORE = "2.63.0", "2.55"
_TESTS = "registry.k8s.io/e2e-test-images"
_UID, _GID = 1000, 50000  # as in upstream's Dockerfile: tests compare them
_PEOPLE = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:{_UID}:{_UID}::/:/bin/sh\n"
    "nobody:x:65534:65534::/:/bin/false\n",
    "etc/group": f"root:x:0:\nuser-defined-in-image:x:{_UID}:\n"
    f"group-defined-in-image:x:{_GID}:user-defined-in-image\nnogroup:x:65534:\n",
    # glibc resolves host names by DNS only, unless this file puts /etc/hosts first.
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# Debian's package scripts would choose between alternatives, but they are not run.
_LINKS = {"usr/bin/nc": "nc.openbsd", "usr/bin/awk": "mawk", "usr/local/bin/iperf": "/usr/bin/iperf"}
# BusyBox's shell in Debian 12, and dash, do not pass on variables whose names are not valid in a shell. Tests that look for
# "data-1" run `sh`, and find this one first; a test that compares a message runs /bin/sh, which is BusyBox.
_SHELL = "usr/bin/bash-static"
# A test reads this image's os-release through a volume, and looks for the name of upstream's base image.
_KITTEN = b'NAME="a stand-in for an image that is based on Alpine Linux"\n'

Say = Callable[[str], None]


def ensure(say: Say = lambda _: None) -> ImageStore:
    """Build all stand-ins into the cache, with the lab's own images; a few seconds if they exist.

    Raises what tools.build.ensure and tools.files.ensure raise, FailedError if packages cannot be fetched, and LabError.
    """
    paths = build.ensure(PROGRAMS, lambda event: say(str(event)))
    paths |= {name: files.ensure(name) for name in FILES}
    system = _debian(say)
    paths["shell"] = system / _SHELL
    images_by_name = recipes(paths, tuple(tar.entries(system)), images.busybox())
    say("writing the images of the suite")
    return images.keep(images_by_name)


def recipes(paths: Mapping[str, Path], system: tuple[Entry, ...], busybox: tuple[Entry, ...]) -> dict[str, Image]:
    """Return reference -> image.

    paths: of PROGRAMS and FILES, and of the `shell` for BusyBox. system: Debian's part of the images with a shell.
    """
    people = tuple(Entry(path, text.encode(), 0o644) for path, text in _PEOPLE.items())
    agnhost = (system, _agnhost(paths, people))
    web = (("/agnhost",), ("test-webserver",))
    shell = (Entry("usr/local/bin/sh", paths["shell"]),)
    return {
        f"{_TESTS}/agnhost:{AGNHOST}": _image(agnhost, ("/agnhost",), ("pause",)),
        f"{_TESTS}/agnhost:{AGNHOST_BEFORE}": _image(agnhost, ("/agnhost",), ("pause",)),
        f"{_TESTS}/nginx:1.15-4": _image(agnhost, *web),
        f"{_TESTS}/nginx:1.27-0": _image(agnhost, *web),
        f"{_TESTS}/kitten:1.8": _image((*agnhost, _pet(paths, "kitten", _KITTEN)), *web),
        f"{_TESTS}/nautilus:1.8": _image((*agnhost, _pet(paths, "nautilus")), *web),
        f"{_TESTS}/glibc-dns-testing:2.0.0": _image((system, people), (), ("bash",)),
        f"{_TESTS}/busybox:1.37.0-1": _image((busybox, people[:2], shell), (), ("sh",)),
        f"{_TESTS}/nonewprivs:1.4": _image(((Entry("usr/local/bin/nnp", paths["nonewprivs"], 0o6755),),), (), ("nnp",)),
        f"{_TESTS}/sample-apiserver:1.29.2": _image(
            ((Entry("sample-apiserver", paths["sample-apiserver"]),),), ("/sample-apiserver",), ()
        ),
        "registry.k8s.io/etcd:3.6.8-0": _image(((Entry("usr/local/bin/etcd", paths["etcd"]),),), (), ("etcd",)),
    }


def _image(layers: tuple[tuple[Entry, ...], ...], entrypoint: tuple[str, ...], command: tuple[str, ...]) -> Image:
    return Image(layers, entrypoint, command=command)


def _agnhost(paths: Mapping[str, Path], people: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return (
        Entry("tmp", mode=0o1777),
        Entry("root", mode=0o700),
        Entry("uploads"),
        Entry("agnhost", paths["agnhost"]),
        Entry("agnhost-2", target="agnhost"),
        Entry("coredns", paths["coredns"]),
        Entry("localhost.crt", paths["agnhost-localhost.crt"], 0o644),
        Entry("localhost.key", paths["agnhost-localhost.key"], 0o644),
        *people,
    )


def _pet(paths: Mapping[str, Path], name: str, release: bytes = b"") -> tuple[Entry, ...]:
    os_release = (Entry("etc/os-release", release, 0o644),) if release else ()
    return (
        Entry(f"{name}.jpg", paths[f"{name}.jpg"], 0o644),
        Entry("data.json", paths[f"{name}.json"], 0o644),
        *os_release,
    )


def _debian(say: Say) -> Path:
    """Return the folder with the unpacked packages, rebuilt when the list changes; newer packages do not matter to tests."""
    home = cache.root() / "conformance"
    key = cache.digest(Path(debian.__file__).read_bytes(), *DEBIAN, *_LINKS, *_LINKS.values())[:16]
    target = home / f"system-{key}"
    with locked(home / ".lock", busy=lambda: say("waiting for another process that fetches packages")):
        if not target.exists():
            say("fetching Debian's packages for the images")
            packages = debian.fetch(DEBIAN, home, with_needed=True)
            for older in home.glob("system-*"):
                disk.remove(older)
            say("unpacking them")
            with disk.whole(target) as fresh:
                _unpack(packages, fresh)
    return target


def _unpack(packages: list[Path], root: Path) -> None:
    debian.merge(root)
    for package in packages:
        debian.unpack(package, root)
    for path, goal in _LINKS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(goal)
