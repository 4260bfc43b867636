from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import RefusedError
from inventories.build import Inventory
from inventories.matching import check_tags, limited, planned_tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fleet():
    hosts = {f"gpu-{number:03}": {} for number in range(1, 41)}
    rack = {"hosts": dict(list(hosts.items())[:10]), "vars": {}}
    return Inventory("jaguar", {"all": {"vars": {}, "hosts": hosts, "children": {"rack_sjc1_r1": rack}}})


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        (None, 40),
        ("all", 40),
        ("gpu-007", 1),
        ("gpu-00*", 9),
        ("rack_sjc1_r1", 10),
        ("rack_sjc1_r1:!gpu-001", 9),
        ("gpu-01*,&rack_sjc1_r1", 1),
        ("!rack_sjc1_r1", 30),
        ("~gpu-0[12]0", 2),
    ],
)
def test_limits_have_the_same_meaning_as_in_ansible(fleet, limit, count):
    assert len(limited(fleet, limit)) == count


def test_a_limit_that_matches_nothing_suggests_similar_names_and_lists_hosts(fleet):
    with pytest.raises(RefusedError) as caught:
        limited(fleet, "gpu-99")
    message, fix = str(caught.value).splitlines()
    assert message == "jaguar: error[INV-006] --limit gpu-99 matches no host; hosts are gpu-001 … gpu-040, 40 in all"
    assert fix.startswith("    fix: write gpu-0")


def test_one_pattern_of_several_that_matches_nothing_is_an_error(fleet):
    with pytest.raises(RefusedError, match="rack_sjc1_r2 matches no host"):
        limited(fleet, "gpu-001,rack_sjc1_r2")


def test_all_patterns_that_match_nothing_are_reported(fleet):
    with pytest.raises(RefusedError) as caught:
        limited(fleet, "x,y")
    assert len(caught.value.problems) == 2


def test_a_limit_that_leaves_no_host_is_an_error(fleet):
    with pytest.raises(RefusedError, match='"gpu-001:!gpu-00\\*" leaves no host'):
        limited(fleet, "gpu-001:!gpu-00*")


def test_an_invalid_regular_expression_in_a_limit_is_an_error(fleet):
    with pytest.raises(RefusedError, match="isn't a regular expression"):
        limited(fleet, "~(")


def test_an_inventory_without_hosts_is_an_error():
    empty = Inventory("jaguar", {"all": {"vars": {}, "hosts": {}, "children": {}}})
    with pytest.raises(RefusedError, match="cluster jaguar has no machines at a site"):
        limited(empty, None)


def test_an_unknown_tag_suggests_a_similar_one():
    with pytest.raises(RefusedError, match='no task has tag "kubelt"; did you mean kubelet'):
        check_tags(["base", "kubelt"], ["base", "kubelet"])


def test_known_tags_pass():
    check_tags(["base"], ["base", "kubelet"])


def test_a_worker_needs_at_most_sixty_tasks():
    assert 0 < planned_tasks(ROOT, ["kubelet"]) < planned_tasks(ROOT, []) <= 60
