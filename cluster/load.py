"""Load cluster.yaml and its hosts files as a `Cluster`, and report the problems of all files at once."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.check import Checked, check_all
from cluster.document import Document, Where, read
from cluster.fields import did_you_mean, few_guesses, near
from cluster.locked import LOCK_FILE, Lock, filled
from cluster.pools import Host, HostsFile
from cluster.positions import HostMarks, Positions
from cluster.problems import Problem, SpecError, in_order
from cluster.project import FOLDER
from cluster.reading import MISSING, UnreadableError, read_text, real
from cluster.spec import Cluster, ClusterSpec
from cluster.validate import validate

SPEC_FILE = "cluster.yaml"

__all__ = ["Loaded", "SpecError", "check_paths", "find_cluster", "load", "load_beside", "load_cluster"]


@dataclass(frozen=True)
class Loaded:
    """A cluster, the positions of its values, and warnings, which don't prevent its use."""

    path: Path
    cluster: Cluster
    positions: Positions
    warnings: tuple[Problem, ...] = ()


def load_cluster(path: Path) -> Cluster:
    """Load and check a cluster.yaml. Raises SpecError with all problems."""
    return load(path).cluster


def load(path: Path) -> Loaded:
    """Like `load_cluster`, with positions and warnings."""
    loaded, problems = check_paths([path])
    if any(problem.is_error for problem in problems):
        raise SpecError(problems)
    return Loaded(path, loaded[0].cluster, loaded[0].positions, tuple(problems))


Beside = Callable[[Path, Cluster, Positions], Iterable[Problem]]
"""Checks other files that a cluster.yaml names, and returns their problems."""


def check_paths(
    paths: Iterable[Path], *, allow_unknown: bool = False, beside: Beside = lambda path, cluster, positions: ()
) -> tuple[list[Loaded], list[Problem]]:
    """Load and check several clusters together. Return (clusters without an error, all problems).

    Never raises for the content of a file. Ranges, names and hosts are compared between clusters.
    allow_unknown: only warn of entries that the catalogue of a cloud lacks. `beside`: checks files that aren't read here.
    """
    with few_guesses(), _uncollected():
        return _check_paths(paths, allow_unknown, beside)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Turn the garbage collector off within the block: it would repeatedly scan hundreds of thousands of live values."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _check_paths(paths: Iterable[Path], allow_unknown: bool, beside: Beside) -> tuple[list[Loaded], list[Problem]]:
    unique = {real(path): path for path in paths}
    drafts = [(path, *_read(path)) for path in unique.values()]
    problems = [problem for _, _, _, of_file in drafts for problem in of_file]
    usable = [(path, cluster, positions) for path, cluster, positions, _ in drafts if cluster]
    problems += check_all(
        [Checked(cluster, positions) for _, cluster, positions in usable], allow_unknown=allow_unknown
    )
    problems += [problem for draft in usable for problem in beside(*draft)]
    bad = {problem.file for problem in problems if problem.is_error}
    loaded = [
        Loaded(path, cluster, positions) for path, cluster, positions in usable if not bad & _files(path, positions)
    ]
    return loaded, in_order(problems)


def _files(path: Path, positions: Positions) -> set[str]:
    """Return the files that a cluster was loaded from, as in messages."""
    hosts = (marks.document.file for marks in positions.hosts.values())
    return {positions.document.file, _shown(path.parent / LOCK_FILE), *hosts}


def load_beside(path: Path, root: Path, *, allow_unknown: bool = False) -> tuple[Loaded | None, list[Problem]]:
    """Load one cluster to build, and compare it with all others in `root`/inventories.

    Return (the cluster or None if it has an error, its problems). Conflicts with other clusters are reported for this
    one. Problems of the others aren't reported, and don't prevent building this one.
    """
    own = real(path)
    others = [root / FOLDER / name / SPEC_FILE for name in clusters(root)]
    inside = any(real(other) == own for other in others)
    beside = [other for other in others if inside and real(other) != own]
    loaded, problems = check_paths([*beside, path], allow_unknown=allow_unknown)
    loaded_cluster = next((candidate for candidate in loaded if candidate.path == path), None)
    folders = {real(other).parent for other in beside}
    return loaded_cluster, [problem for problem in problems if real(problem.file).parent not in folders]


def find_cluster(name_or_path: str, root: Path) -> Path:
    """Find a cluster.yaml, given as a file, as its folder, or as a name in `root`/inventories.

    Raises SpecError with the existing clusters if there is no match.
    """
    given = Path(name_or_path)
    if given.suffix in (".yaml", ".yml") or os.path.isfile(given):
        return given
    if os.path.isfile(given / SPEC_FILE) and ("/" in name_or_path or not os.path.isdir(root / FOLDER / given)):
        return given / SPEC_FILE
    if os.path.isfile(root / FOLDER / given / SPEC_FILE):
        return root / FOLDER / given / SPEC_FILE
    names = clusters(root)
    place = given if "/" in name_or_path else Path(FOLDER) / given
    message = f"there is no cluster {name_or_path}{did_you_mean(given.name, names)}"
    best = near(given.name, names)
    hint = f"write {best[0]}" if best else f"write one of {', '.join(names)}, or the path of a {SPEC_FILE}"
    if not names:
        hint = f"write {place / SPEC_FILE}"
    raise SpecError([Problem("CFG-016", message, hint, str(place / SPEC_FILE))])


def clusters(root: Path) -> list[str]:
    """Return the names of the clusters in a checkout, sorted."""
    return sorted(path.parent.name for path in (root / FOLDER).glob(f"*/{SPEC_FILE}"))


def _read(path: Path) -> tuple[Cluster | None, Positions, list[Problem]]:
    document = read(path, _shown(path), ClusterSpec.model_fields)
    problems = list(document.problems)
    if document.data is None:
        return None, Positions(document), problems
    spec = validate(ClusterSpec, document)
    problems += [*spec.problems, *_misnamed(path, document)]
    left_out = list(spec.left_out)
    hosts: dict[str, tuple[Host, ...]] = {}
    marks: dict[str, HostMarks] = {}
    pool_of: dict[Path, str] = {}
    for pool, file in _hosts_files(document):
        at: Where = ("pools", pool, "hosts")
        if (first := pool_of.setdefault(real(path.parent / file), pool)) != pool:
            message = f"pools.{pool}.hosts names {file}, which pool {first} already uses"
            problems.append(
                document.problem("INV-001", at, message, "name a separate file; a machine can only be in one pool")
            )
            left_out.append(at)
            continue
        pool_hosts, marks[pool], complaints = _read_hosts(path.parent / file, document, at)
        problems += complaints
        hosts[pool] = pool_hosts
        if complaints:
            left_out.append((*at, "some"))  # rules about all hosts of the pool can't decide
    positions = Positions(document, marks, tuple(left_out))
    if spec.value is None:
        return None, positions, problems
    authorities, complaints = _authorities(path.parent, spec.value, document)
    complete, of_lock = _with_lock(path.parent / LOCK_FILE, spec.value)
    own = {p: h for p, h in hosts.items() if p in spec.value.pools}
    cluster = Cluster(spec=complete, hosts=own, authorities=authorities)
    return cluster, positions, [*problems, *complaints, *of_lock]


def _with_lock(path: Path, spec: ClusterSpec) -> tuple[ClusterSpec, list[Problem]]:
    """Return the spec with the checksums of its lock, if there is one."""
    if not os.path.lexists(path):
        return spec, []
    return filled(spec, read(path, _shown(path), Lock.model_fields))


def _authorities(folder: Path, spec: ClusterSpec, document: Document) -> tuple[dict[str, str], list[Problem]]:
    """Map each site to the PEM of its registries' CA. Messages never repeat content of the file."""
    pems: dict[str, str] = {}
    problems: list[Problem] = []
    for name, site in spec.sites.items():
        if not site.registries or not site.registries.ca:
            continue
        path = folder / site.registries.ca
        at: Where = ("sites", name, "registries", "ca")
        try:
            pems[name] = text = read_text(path)
        except UnreadableError as error:
            message = f"{_shown(path)} can't be read: {error.reason}"
            hint = f"create {_shown(path)}, or correct the name"
        else:
            if "PRIVATE KEY" in text:
                message = f"{_shown(path)} contains a private key, which every machine of {name} could read"
                hint = "remove everything except certificates from it"
            elif "-----BEGIN CERTIFICATE-----" not in text:
                message, hint = f"{_shown(path)} has no certificate in PEM", "write the CA's certificate to it"
            else:
                continue
        problems.append(document.problem("REG-003", at, message, hint))
    return pems, problems


def _read_hosts(path: Path, spec: Document, at: Where) -> tuple[tuple[Host, ...], HostMarks, list[Problem]]:
    document = read(path, _shown(path), HostsFile.model_fields)
    if any(not problem.line for problem in document.problems):
        (unread,), given = document.problems, spec.data["pools"][at[1]]["hosts"]
        message, hint = f"pools.{at[1]}.hosts names {given}, but {document.file} {unread.message}", "name another file"
        if unread.message == MISSING:
            message = f"pools.{at[1]}.hosts names {given}, but there is no file {document.file}"
            hint = f"create {document.file}, or correct the name"
        return (), HostMarks(document, ()), [spec.problem("CFG-010", at, message, hint)]
    problems = list(document.problems)
    if document.data is None:
        return (), HostMarks(document, ()), problems
    valid = validate(HostsFile, document)
    problems += valid.problems
    dropped = {where[1] for where in valid.left_out if len(where) > 1}
    listed = document.data.get("hosts")
    count = len(listed) if isinstance(listed, list) else 0
    kept = tuple(index for index in range(count) if index not in dropped)
    return (valid.value.hosts if valid.value else ()), HostMarks(document, kept), problems


def _hosts_files(document: Document) -> list[tuple[str, str]]:
    """Return (pool, file name) of every pool that names a file, even if the pool has other errors."""
    pools = document.data.get("pools")
    items = pools.items() if isinstance(pools, dict) else ()
    named = [(pool, value.get("hosts")) for pool, value in items if isinstance(value, dict)]
    return [(pool, file) for pool, file in named if isinstance(file, str) and file]


def _misnamed(path: Path, document: Document) -> list[Problem]:
    """Check that the folder has the cluster's name, by which commands find the cluster and Pulumi its stack."""
    name, folder = document.data.get("name"), real(path).parent
    if folder.parent.name != FOLDER or not isinstance(name, str) or name == folder.name:
        return []
    message = f"name {name} differs from the folder's, {folder.name}; commands couldn't find the cluster by its name"
    return [document.problem("CFG-017", ("name",), message, f"write {folder.name}, or rename the folder to {name}")]


def _shown(path: Path) -> str:
    """Return the path relative to the working directory if it is inside it."""
    try:
        return str(real(path).relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # the working directory was deleted
        return str(path)
