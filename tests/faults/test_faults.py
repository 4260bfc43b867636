"""Every fault of `tests.bench.faults` once, under load; README.md beside this says what was found so far."""

from __future__ import annotations

import random

import pytest

from clients.access import Access
from cluster.spec import Cluster
from tests.bench.faults import FAULTS, Fault, attempt
from tests.lab.support import menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

SEED = 20170
EACH_TIME = frozenset(
    {
        "a follower of main is killed",
        "main loses its quorum",
        "the leader of main is cut off from its peers",
        "the disk of a follower of main is full",
        "the disk of main's leader is slow",
        "events loses every copy of its data",
        "an API server is killed",
        "all API servers are stopped",
    }
)
"""Of the rest one is of a kind with each of these; they are for the soak."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, marks=[] if each.name in EACH_TIME else [pytest.mark.soak], id=str(each)) for each in FAULTS],
)
def test_nothing_that_was_acknowledged_is_lost(fault: Fault, lab: Cluster, access: Access) -> None:
    outcome = attempt([fault], lab, access, random.Random(SEED))
    print(outcome)
    assert outcome.wrong == ()
    assert outcome.load is not None
    assert outcome.load.writes > 0


def test_faults_of_the_short_list_are_of_the_table() -> None:
    assert EACH_TIME <= {each.name for each in FAULTS}


def test_after_all_of_them_an_up_changes_nothing(lab: Cluster) -> None:
    assert menagerie("up", "lab", "--json").json["changed"] == 0
