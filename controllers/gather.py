"""The files of an inventory that go into the cluster: those that its spec names, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from cluster.errors import RefusedError
from cluster.load import SPEC_FILE
from cluster.reading import UnreadableError, read_text
from cluster.spec import ClusterSpec
from controllers.manifests import MOST_BYTES


def image_of(running: Iterable[str]) -> str:
    """Return the image that already runs. Errors: raises RefusedError if no controller runs, or several images do."""
    images = sorted(set(running))
    if len(images) == 1:
        return images[0]
    problem = f"controllers run several images: {', '.join(images)}" if images else "no controller runs yet"
    raise RefusedError(
        f"{problem}; name an image with --image; ./menagerie controllers image --push REFERENCE builds one",
        code="no-image",
    )


def files_of(spec: ClusterSpec, path: Path) -> dict[str, str]:
    """Return path, relative to the folder of cluster.yaml -> text. path: of cluster.yaml.

    Errors: raises RefusedError with every problem.
    """
    files = {SPEC_FILE: read_text(path)}
    problems = []
    for name in sorted(set(named(spec))):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            problems.append(
                f"{name} is not below the folder of {path}: move it there, and write its path relative to that folder"
            )
            continue
        try:
            files[name] = read_text(path.parent / name)
        except UnreadableError as error:
            problems.append(str(error))
    size = sum(len(text.encode()) for text in files.values())
    if size > MOST_BYTES:
        problems.append(
            f"the files of the spec have {size:,} bytes, and a ConfigMap holds {MOST_BYTES:,}; the largest is {_largest(files)}; "
            "a directory of that size belongs in LDAP (tenancy.directory.ldap)"
        )
    if problems:
        raise RefusedError("\n".join(problems), code="not-carried")
    return files


def named(spec: ClusterSpec) -> Iterator[str]:
    """Yield the files that a spec names, relative to its folder."""
    yield from (pool.hosts for pool in spec.pools.values() if pool.hosts)
    for site in spec.sites.values():
        if site.registries and site.registries.ca:
            yield site.registries.ca
        bmcs = site.provisioning.bmc if site.provisioning else None
        if bmcs and bmcs.reader:
            yield from filter(None, (bmcs.ca, bmcs.pins))
    if spec.tenancy:
        directory = spec.tenancy.directory
        if directory.file:
            yield directory.file
        if directory.ldap and directory.ldap.ca:
            yield directory.ldap.ca


def _largest(files: dict[str, str]) -> str:
    return max(files, key=lambda name: len(files[name]))
