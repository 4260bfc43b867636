"""The lock next to a spec: checksums of what the cluster downloads, which `bundle` wrote after verifying them.

They count as if they were in the spec's `artefacts`. A spec that contradicts its lock, or a lock that contradicts
upstream, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from cluster.document import Document
from cluster.model import Model
from cluster.problems import Problem
from cluster.quantities import Sha256
from cluster.sources import downloaded, upstream
from cluster.spec import Cloud, ClusterSpec
from cluster.validate import validate

LOCK_FILE = "artefacts.lock"
VERSION = 1
MARK = "# Written by `menagerie bundle`."
_HEAD = f"""{MARK} Don't edit it: commit it, and review its changes.
# SHA-256 of what this cluster downloads: host/path of a file, or an image with its tag -> 64 hexadecimal digits.
# yamllint disable rule:line-length
"""
_AGAIN = "compare both with the project's own list, then run `./menagerie bundle` again"


class Lock(Model):
    """Verified checksums."""

    version: int = Field(default=VERSION, ge=1)
    """Format version of the file."""
    sha256: dict[str, Sha256] = Field(default={})
    """As `artefacts.sha256` of a spec."""
    own_builds: dict[str, Sha256] = Field(default={})
    """As `artefacts.own_builds` of a spec."""


def text(lock: Lock) -> str:
    """Return the lock as a file; the same checksums give the same text. Quoted, as some checksums are numbers to YAML."""
    parts = [_HEAD, f"version: {lock.version}\n", _table("sha256", lock.sha256)]
    return "".join([*parts, _table("own_builds", lock.own_builds)])


def _table(key: str, sums: Mapping[str, str]) -> str:
    return "".join([f"{key}:\n", *(f'  {source}: "{sums[source]}"\n' for source in sorted(sums))]) if sums else ""


def filled(spec: ClusterSpec, document: Document) -> tuple[ClusterSpec, list[Problem]]:
    """Return the spec with the checksums of a lock, and the lock's problems. A lab knows those of what it built."""
    if document.data is None:
        return spec, document.problems
    valid = validate(Lock, document)
    problems = [*document.problems, *valid.problems]
    if valid.value is None or spec.control_plane.cloud is Cloud.LAB:
        return spec, problems
    lock = valid.value
    if lock.version > VERSION:
        message = f"a newer Menagerie wrote it: version {lock.version}, and this checkout reads {VERSION}"
        return spec, [*problems, document.problem("CFG-021", ("version",), message, "use a checkout that is as new")]
    wrong = _contradictions(spec, lock, document)
    used = downloaded(spec)  # the lock of another release of Kubernetes has names that this one doesn't need
    kept = {
        key: {s: d for s, d in getattr(lock, key).items() if s in used and s not in wrong}
        for key in ("sha256", "own_builds")
    }
    own = spec.artefacts
    merged = {key: {**sums, **getattr(own, key)} for key, sums in kept.items()}
    return spec.model_copy(update={"artefacts": own.model_copy(update=merged)}), [*problems, *wrong.values()]


def _contradictions(spec: ClusterSpec, lock: Lock, document: Document) -> dict[str, Problem]:
    published, own = upstream(), spec.artefacts
    problems = {}
    for key in ("sha256", "own_builds"):
        written = {**own.sha256, **own.own_builds}
        for source, checksum in getattr(lock, key).items():
            if written.get(source, checksum) != checksum:
                message = f"{source} is {checksum}, but the spec's artefacts has {written[source]}"
                hint = "remove it from the spec if the bundle is right; otherwise run `./menagerie bundle` again"
                problems[source] = document.problem("CFG-021", (key, source), message, hint)
            elif key == "sha256" and published.get(source, checksum) != checksum:
                message = f"{source} is {checksum}, but upstream publishes {published[source]}"
                problems[source] = document.problem("CFG-021", (key, source), message, _AGAIN)
    return problems
