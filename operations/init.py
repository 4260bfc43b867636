"""The folder of a new cluster: made for the fleet that is there, checked beside it, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_core import PydanticCustomError

from cluster import sources, starter
from cluster.errors import RefusedError
from cluster.load import FOLDER, SPEC_FILE, Loaded, check_paths, clusters
from cluster.problems import Problem, SpecError
from cluster.quantities import parse_name
from cluster.spec import Cloud, Cluster
from cluster.starter import Asked, Starter
from cluster.writing import new_folder


@dataclass(frozen=True)
class Prepared:
    """What `write` writes. folder: where. lacking: downloads whose checksums the owner must give before `up`."""

    starter: Starter
    folder: Path
    cluster: Cluster
    lacking: tuple[str, ...]


def prepare(asked: Asked, root: Path) -> Prepared:
    """The folder, checked beside the fleet of a checkout. Writes nothing there.

    RefusedError where something is in the way or asked for that there is not; SpecError for a name that no cluster of
    this fleet may have.
    """
    folder = root / FOLDER / _valid(asked.name)
    if os.path.lexists(folder):
        raise RefusedError(
            f"{FOLDER}/{asked.name} exists, and was not touched; choose another name, or remove it first",
            code="init-refused",
        )
    known = [root / FOLDER / name / SPEC_FILE for name in clusters(root)]
    fleet = _fleet(known)
    made = starter.make(asked, [one.cluster for one in fleet])
    cluster = _checked(made, known, folder)
    unknown = () if cluster.is_lab else sources.without_checksum(cluster.spec)
    return Prepared(made, folder, cluster, tuple(each.source for each in unknown))


def write(prepared: Prepared) -> None:
    """Write the folder. FileExistsError where somebody was first."""
    new_folder(prepared.folder, prepared.starter.files)


def page_of(asked: Asked) -> str:
    """The page that goes on from here."""
    pages = {Cloud.AWS: "aws", Cloud.AZURE: "azure", Cloud.GCP: "google-cloud", Cloud.LAB: "lab"}
    return f"docs/start/{pages[asked.cloud]}.md"


def _valid(name: str) -> str:
    try:
        return str(parse_name(name))
    except PydanticCustomError as error:
        context = error.context or {}
        raise SpecError([Problem(error.type, context["message"], context["hint"], "init", path="name")]) from None


def _fleet(known: list[Path]) -> list[Loaded]:
    """Nobody knows the ranges of a cluster that can't be read."""
    loaded, _ = check_paths(known, allow_unknown=True)
    if wrong := [path.parent.name for path in known if path not in {one.path for one in loaded}]:
        listed = ", ".join(wrong)
        raise RefusedError(
            f"free ranges are unknown while {listed} can't be loaded; run first: ./menagerie check {' '.join(wrong)}",
            code="init-refused",
        )
    return loaded


def _checked(made: Starter, known: list[Path], folder: Path) -> Cluster:
    """As `check` will do once it is written. SpecError where it would refuse: a name that another cluster has, for example."""
    with tempfile.TemporaryDirectory(prefix="menagerie-init-") as temporary:
        tried = Path(temporary) / FOLDER / folder.name
        new_folder(tried, made.files)
        loaded, problems = check_paths([*known, tried / SPEC_FILE], allow_unknown=True)
    wrong = [problem for problem in problems if problem.is_error]
    if wrong:
        raise SpecError(
            [replace(problem, file=problem.file.replace(str(tried), f"{FOLDER}/{folder.name}")) for problem in wrong]
        )
    return next(one.cluster for one in loaded if one.path == tried / SPEC_FILE)
