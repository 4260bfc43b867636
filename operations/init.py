"""Creates the folder of a new cluster: fitted to the existing fleet, checked together with it, and written atomically."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_core import PydanticCustomError

from cluster import sources, starter
from cluster.errors import RefusedError
from cluster.load import SPEC_FILE, Loaded, check_paths, clusters
from cluster.problems import Problem, SpecError
from cluster.project import FOLDER
from cluster.quantities import parse_name
from cluster.spec import Cloud, Cluster
from cluster.starter import Request, Starter
from cluster.writing import new_folder


@dataclass(frozen=True)
class Prepared:
    """What `write` writes. folder: where to. lacking: downloads whose checksums the owner must add before `up`."""

    starter: Starter
    folder: Path
    cluster: Cluster
    lacking: tuple[str, ...]


def prepare(asked: Request, root: Path) -> Prepared:
    """Prepare the folder and check it together with a checkout's fleet. Writes nothing there.

    Raises RefusedError if the folder exists or a request can't be met; SpecError for a name that is invalid or taken.
    """
    folder = root / FOLDER / _valid(asked.name)
    if os.path.lexists(folder):
        raise RefusedError(
            f"{FOLDER}/{asked.name} exists and was not changed; choose another name, or remove it first",
            code="init-refused",
        )
    spec_files = [root / FOLDER / name / SPEC_FILE for name in clusters(root)]
    fleet = _fleet(spec_files)
    new_starter = starter.make(asked, [loaded.cluster for loaded in fleet])
    cluster = _checked(new_starter, spec_files, folder)
    downloads = () if cluster.is_lab else sources.without_checksum(cluster.spec)
    return Prepared(new_starter, folder, cluster, tuple(download.source for download in downloads))


def write(prepared: Prepared) -> None:
    """Write the folder. Raises FileExistsError if it was created meanwhile."""
    new_folder(prepared.folder, prepared.starter.files)


def page_of(asked: Request) -> str:
    """Return the page with the next steps."""
    pages = {Cloud.AWS: "aws", Cloud.AZURE: "azure", Cloud.GCP: "google-cloud", Cloud.LAB: "lab"}
    return f"docs/start/{pages[asked.cloud]}.md"


def _valid(name: str) -> str:
    try:
        return str(parse_name(name))
    except PydanticCustomError as error:
        context = error.context or {}
        raise SpecError([Problem(error.type, context["message"], context["hint"], "init", path="name")]) from None


def _fleet(spec_files: list[Path]) -> list[Loaded]:
    """Load the fleet. Raises RefusedError if a cluster can't be loaded: its address ranges would be unknown."""
    loaded, _ = check_paths(spec_files, allow_unknown=True)
    if broken := [path.parent.name for path in spec_files if path not in {entry.path for entry in loaded}]:
        listed = ", ".join(broken)
        raise RefusedError(
            f"free address ranges are unknown while {listed} can't be loaded; run first: ./menagerie check {' '.join(broken)}",
            code="init-refused",
        )
    return loaded


def _checked(new_starter: Starter, spec_files: list[Path], folder: Path) -> Cluster:
    """Check the folder as `check` will. Raises SpecError if it would refuse: another cluster has the name, for example."""
    with tempfile.TemporaryDirectory(prefix="menagerie-init-") as temporary:
        trial = Path(temporary) / FOLDER / folder.name
        new_folder(trial, new_starter.files)
        loaded, problems = check_paths([*spec_files, trial / SPEC_FILE], allow_unknown=True)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise SpecError(
            [replace(problem, file=problem.file.replace(str(trial), f"{FOLDER}/{folder.name}")) for problem in errors]
        )
    return next(entry.cluster for entry in loaded if entry.path == trial / SPEC_FILE)
