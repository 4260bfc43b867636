"""Find, load and check the clusters that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.output import print_problems
from cluster import placeholders
from cluster.load import Beside, Loaded, SpecError, check_paths, find_cluster, load_beside
from cluster.problems import Problem
from cluster.project import ROOT
from cluster.spec import Cluster


def load(
    names: Sequence[str], *, allow_unknown: bool, beside: Beside = lambda path, cluster, positions: ()
) -> tuple[list[Loaded], list[Problem]]:
    """Load clusters. Return those without errors, and the problems of all, including names that match no cluster.

    `beside` checks files that are not read here.
    """
    try:
        paths = [find_cluster(name, ROOT) for name in names]
    except SpecError as error:
        return [], error.problems
    return check_paths(paths, allow_unknown=allow_unknown, beside=beside)


def checked(name: str, *, allow_unknown: bool = True) -> Cluster:
    """Load and check a cluster, and print warnings. Errors: raises SpecError with all problems.

    A verb that builds passes its --allow-unknown; a verb that only looks accepts the cluster as it was built.
    """
    loaded, problems = load([name], allow_unknown=allow_unknown)
    if any(problem.is_error for problem in problems):
        raise SpecError(problems)
    print_problems(problems)
    return loaded[0].cluster


def built(name: str) -> Cluster:
    """Load and check a cluster that has been built. For verbs that import more than it takes to ask its backend.

    Errors: raises NotBuiltError too.
    """
    cluster = checked(name)
    from cli.actions import clusters

    return clusters.built(cluster)


def to_build(name: str, *, allow_unknown: bool) -> Cluster:
    """Load a cluster as `checked` does; it is an error if it conflicts with another cluster in inventories/."""
    loaded, problems = load_beside(find_cluster(name, ROOT), ROOT, allow_unknown=allow_unknown)
    if loaded is None:
        raise SpecError(problems)
    print_problems([*problems, *placeholders.left(loaded.positions)])
    return loaded.cluster


def cluster_folder(name: str) -> Path:
    """Return the folder of a cluster's files."""
    return find_cluster(name, ROOT).parent
