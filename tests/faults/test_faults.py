"""Inject every fault of `tests.bench.faults` once, under load; README.md in this folder lists what was found."""

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
"""The faults of `make test`. All others run only in the soak: pauses, lost packets, clocks, and more victims of the same kinds."""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[] if fault.name in EACH_TIME else [pytest.mark.soak], id=str(fault))
        for fault in FAULTS
    ],
)
def test_nothing_that_was_acknowledged_is_lost(fault: Fault, lab: Cluster, access: Access) -> None:
    outcome = attempt([fault], lab, access, random.Random(SEED))
    print(outcome)
    assert outcome.wrong == ()
    assert outcome.load is not None
    assert outcome.load.writes > 0


def test_every_fault_of_the_short_list_is_in_the_table() -> None:
    assert EACH_TIME <= {fault.name for fault in FAULTS}


def test_an_up_after_all_faults_changes_nothing(lab: Cluster) -> None:
    assert menagerie("up", "lab", "--json").json["changed"] == 0
