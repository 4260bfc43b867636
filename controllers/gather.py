"""What of an inventory goes into the cluster: the files that its spec names, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from cluster.errors import RefusedError
from cluster.load import SPEC_FILE
from cluster.reading import UnreadableError, read_text
from cluster.spec import ClusterSpec
from controllers.manifests import MOST_BYTES


def image_of(running: Iterable[str]) -> str:
    """The image that runs already. RefusedError where there is none, or not one."""
    found = sorted(set(running))
    if len(found) == 1:
        return found[0]
    told = f"controllers of several images run: {', '.join(found)}" if found else "no controller runs yet"
    raise RefusedError(
        f"{told}; name one with --image: ./menagerie controllers image --push REFERENCE makes it", code="no-image"
    )


def files_of(spec: ClusterSpec, path: Path) -> dict[str, str]:
    """Path from the folder of cluster.yaml -> text. path: of the cluster.yaml. RefusedError with all that is wrong."""
    found = {SPEC_FILE: read_text(path)}
    wrong = []
    for name in sorted(set(named(spec))):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            wrong.append(f"{name} is not below the folder of {path}: move it there, and name it from there")
            continue
        try:
            found[name] = read_text(path.parent / name)
        except UnreadableError as error:
            wrong.append(str(error))
    size = sum(len(text.encode()) for text in found.values())
    if size > MOST_BYTES:
        wrong.append(
            f"the files of the spec have {size:,} bytes, and a ConfigMap takes {MOST_BYTES:,}: {_largest(found)} is the largest; "
            "a directory of that size belongs into LDAP (tenancy.directory.ldap)"
        )
    if wrong:
        raise RefusedError("\n".join(wrong), code="not-carried")
    return found


def named(spec: ClusterSpec) -> Iterator[str]:
    """The files that a spec names, from its folder."""
    yield from (pool.hosts for pool in spec.pools.values() if pool.hosts)
    for site in spec.sites.values():
        if site.registries and site.registries.ca:
            yield site.registries.ca
    if spec.tenancy:
        directory = spec.tenancy.directory
        if directory.file:
            yield directory.file
        if directory.ldap and directory.ldap.ca:
            yield directory.ldap.ca


def _largest(found: dict[str, str]) -> str:
    return max(found, key=lambda name: len(found[name]))
