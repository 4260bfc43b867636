"""Find, load and check the clusters that a command line names."""

from __future__ import annotations

from cli.output import print_problems
from cluster.load import Loaded, SpecError, check_paths, find_cluster, load_beside
from cluster.problems import Problem
from cluster.project import ROOT
from cluster.spec import Cluster


def load(names: list[str], *, allow_unknown: bool, with_people: bool = False) -> tuple[list[Loaded], list[Problem]]:
    """Load clusters. Return those without errors, and the problems of all, including names that match no cluster.

    with_people: also check the files of people, which only tenancy needs.
    """
    try:
        paths = [find_cluster(name, ROOT) for name in names]
    except SpecError as error:
        return [], error.problems
    if with_people:
        from controllers.tenancy.directory.check import problems

        return check_paths(paths, allow_unknown=allow_unknown, beside=problems)
    return check_paths(paths, allow_unknown=allow_unknown)


def checked(name: str, *, allow_unknown: bool = True) -> Cluster:
    """Load and check a cluster, and print warnings. Errors: raises SpecError with all problems.

    A verb that builds passes its --allow-unknown; a verb that only looks accepts the cluster as it was built.
    """
    loaded, problems = load([name], allow_unknown=allow_unknown)
    if any(problem.is_error for problem in problems):
        raise SpecError(problems)
    print_problems(problems)
    return loaded[0].cluster


def to_build(name: str, *, allow_unknown: bool) -> Cluster:
    """Load a cluster as `checked` does; it is an error if it conflicts with another cluster in inventories/."""
    loaded, problems = load_beside(find_cluster(name, ROOT), ROOT, allow_unknown=allow_unknown)
    if loaded is None:
        raise SpecError(problems)
    print_problems(problems)
    return loaded.cluster
