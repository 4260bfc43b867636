"""The clusters that a command line means: found, loaded, checked."""

from __future__ import annotations

from cli.output import print_problems
from cluster.load import Loaded, SpecError, check_paths, find_cluster, load_beside
from cluster.problems import Problem
from cluster.project import ROOT
from cluster.spec import Cluster


def load(names: list[str], *, allow_unknown: bool, with_people: bool = False) -> tuple[list[Loaded], list[Problem]]:
    """Those without an error, and every problem of all; also of a name that is no cluster's.

    with_people: also of the files with people, which only tenancy needs.
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
    """The cluster, loaded and checked; warnings are printed. SpecError with everything wrong with it.

    What builds a cluster says whether unknown entries are allowed; what looks at one takes it as it was built.
    """
    loaded, problems = load([name], allow_unknown=allow_unknown)
    if any(problem.is_error for problem in problems):
        raise SpecError(problems)
    print_problems(problems)
    return loaded[0].cluster


def to_build(name: str, *, allow_unknown: bool) -> Cluster:
    """As `checked`, and refused where it clashes with another cluster of inventories/."""
    loaded, problems = load_beside(find_cluster(name, ROOT), ROOT, allow_unknown=allow_unknown)
    if loaded is None:
        raise SpecError(problems)
    print_problems(problems)
    return loaded.cluster
