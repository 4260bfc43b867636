"""Conditions of a cluster's own roles, for any number of pools."""

from __future__ import annotations

import re
from itertools import islice

import pytest

from cluster.check.limits import MOST_GRANTS, POOLS_IN_A_CONDITION
from sandbox.simcloud.gcp.conditions import logical_operators
from stacks.gcp import confinement, machines, tags, volumes
from stacks.gcp.permissions import only_our_roles, only_records
from stacks.gcp.tags import base_name

NAMED = re.compile(r'"/instances/\{name\}"\)\.startsWith\("([^"]+)-"')
BOTH = pytest.mark.parametrize("kind", [machines, volumes], ids=["machines", "volumes"])
NAME = {machines: "machines", volumes: "volumes"}


def with_pools(build, number):
    return build({"pools": {f"p{i}": {"machine": "any", "max": 1} for i in range(number)} | {"workers": None}}, {})


@BOTH
@pytest.mark.parametrize("number", [1, 10, 11, 12, 13, 40, 100])
def test_every_condition_is_one_that_google_accepts_and_together_they_name_each_pool_once(build, kind, number):
    cluster = with_pools(build, number)
    parts = list(confinement.parts(cluster, kind.OPERATORS))
    conditions = [kind.confined(cluster, pools) for _, pools in parts]
    assert max(map(logical_operators, conditions)) <= confinement.MOST_OPERATORS
    assert [name for text in conditions for name in NAMED.findall(text)] == [
        base_name(cluster, f"p{i}") for i in range(number)
    ]
    for distinct in (
        {confinement.name_of(cluster, NAME[kind], ending) for ending, _ in parts},
        {confinement.title(NAME[kind], pools) for _, pools in parts},
    ):
        assert len(distinct) == len(parts) <= MOST_GRANTS // 2


@BOTH
def test_a_condition_is_as_full_as_it_may_be_and_check_knows_how_full(build, kind):
    cluster = with_pools(build, 40)
    _, pools = next(confinement.parts(cluster, kind.OPERATORS))
    assert logical_operators(kind.confined(cluster, pools)) == confinement.MOST_OPERATORS
    assert len(pools) == POOLS_IN_A_CONDITION[NAME[kind]]


def test_a_cluster_with_few_pools_keeps_the_names_of_its_grants(build):
    cluster = with_pools(build, 3)
    assert list(islice(confinement.parts(cluster, volumes.OPERATORS), 2)) == [("", ("p0", "p1", "p2"))]


def test_another_cluster_whose_name_begins_alike_is_not_named(build):
    """The reason why a condition has each pool, and not the prefix of all."""
    condition = volumes.confined(build({"name": "gibbon"}), ("cpu",))
    (start,) = NAMED.findall(condition)
    assert not f"{base_name(build({'name': 'gibbon-two'}), 'cpu')}-x7k2".startswith(f"{start}-")


@pytest.mark.parametrize("number", [1, 5, 6, 60])
def test_the_granters_condition_is_one_that_google_accepts(number):
    names = [f"c{i}" for i in range(number)]
    condition = only_our_roles("apes", names)
    assert logical_operators(condition) <= confinement.MOST_OPERATORS
    assert len(re.findall("projects/apes/roles/", condition)) == 2 * number
    assert all(part.count("projects/") <= 10 for part in condition.split(" || "))


@pytest.mark.parametrize("number", [1, 13])
def test_operators_may_use_the_clusters_buckets_of_records_alone(number):
    names = [f"c{i}" for i in range(number)]
    condition = only_records("apes", names)
    assert logical_operators(condition) <= confinement.MOST_OPERATORS
    starts = re.findall(r"resource\.name\.startsWith\('projects/_/buckets/([^']*)'\)", condition)
    assert starts == [tags.bucket_name(name, "artefacts", "apes") for name in names]
    assert not any(
        tags.bucket_name("c1", use, "apes").startswith(tuple(starts)) for use in ("backups", "audit", "logs")
    )


def test_more_clusters_than_a_condition_can_name_are_refused():
    with pytest.raises(ValueError, match="14 clusters; a condition can name 13"):
        only_records("apes", [f"c{i}" for i in range(14)])
