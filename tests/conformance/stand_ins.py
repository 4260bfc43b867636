"""Images that the suite's pods name, made of programs of this release and of Debian's packages: no registry is asked.

docs/how-to/conformance.md says how each differs from upstream's. Which there are follows from test/utils/image/manifest.go and
from what tests with [Conformance] in their name use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

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
    "usr-is-merged",  # or what asks for a merged /usr would bring the program that merges, and Perl
    "util-linux",
    "wget",
)
"""What upstream's agnhost takes from Alpine. /bin/sh is dash: tests compare a shell's messages, and bash words its own."""

AGNHOST, AGNHOST_BEFORE = "2.63.0", "2.55"
_TESTS = "registry.k8s.io/e2e-test-images"
_UID, _GID = 1000, 50000  # as upstream's Dockerfile has them: tests compare them
_PEOPLE = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:{_UID}:{_UID}::/:/bin/sh\n"
    "nobody:x:65534:65534::/:/bin/false\n",
    "etc/group": f"root:x:0:\nuser-defined-in-image:x:{_UID}:\n"
    f"group-defined-in-image:x:{_GID}:user-defined-in-image\nnogroup:x:65534:\n",
    # glibc asks only DNS for a host's name unless it is told to look into /etc/hosts first.
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# Debian's scripts would choose between alternatives, and are not run.
_LINKS = {"usr/bin/nc": "nc.openbsd", "usr/bin/awk": "mawk", "usr/local/bin/iperf": "/usr/bin/iperf"}
# BusyBox's shell in Debian 12, and dash, pass on no variable whose name is no name of a shell's. Tests that look for "data-1" run `sh`,
# and find this first; one that compares a message runs /bin/sh, which is BusyBox.
_SHELL = "usr/bin/bash-static"
# A test reads the os-release of this image through a volume, and compares it with the name of upstream's base.
_KITTEN = b'NAME="a stand-in for an image that is based on Alpine Linux"\n'

Say = Callable[[str], None]


def ensure(say: Say = lambda _: None) -> ImageStore:
    """All of them in the cache, beside the lab's own; some seconds when they were made before.

    Raises what tools.build.ensure and tools.files.ensure raise, FailedError where packages can't be had, and LabError.
    """
    paths = build.ensure(PROGRAMS, lambda event: say(str(event)))
    paths |= {name: files.ensure(name) for name in FILES}
    system = _debian(say)
    paths["shell"] = system / _SHELL
    made = recipes(paths, tuple(tar.entries(system)), images.busybox())
    say("writing the images of the suite")
    return images.keep(made)


def recipes(paths: Mapping[str, Path], system: tuple[Entry, ...], busybox: tuple[Entry, ...]) -> dict[str, Image]:
    """Reference -> image. paths: of PROGRAMS and FILES, and the `shell` beside BusyBox. system: Debian's part of those with a shell."""
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
    told = (Entry("etc/os-release", release, 0o644),) if release else ()
    return (
        Entry(f"{name}.jpg", paths[f"{name}.jpg"], 0o644),
        Entry("data.json", paths[f"{name}.json"], 0o644),
        *told,
    )


def _debian(say: Say) -> Path:
    """The folder with the packages unpacked, made anew when others are wanted: newer ones change nothing that is tested."""
    home = cache.root() / "conformance"
    key = cache.digest(Path(debian.__file__).read_bytes(), *DEBIAN, *_LINKS, *_LINKS.values())[:16]
    target = home / f"system-{key}"
    with cache.locked(home / ".lock", lambda: say("waiting for another process that fetches packages")):
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
