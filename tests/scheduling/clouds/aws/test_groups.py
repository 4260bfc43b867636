"""Auto Scaling groups of AWS: its own libraries through the door."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.clouds import common, rights
from controllers.autoscaler.clouds.common import LostError
from controllers.autoscaler.groups import GroupError
from stacks.aws.workers import autoscaler_tags
from tests.scheduling.clouds.aws.support import (
    REGION,
    action,
    alive,
    changes,
    desired,
    form_of,
    groups,
    in_pages_of,
    refusal,
    upon,
)
from tests.scheduling.clouds.door import Asked, Door, Told, once


def test_a_group_is_read_with_its_machines_and_the_names_that_their_nodes_have(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    first, *_ = alive(cloud, made("ours"))
    group = groups(small, {f"aws:///{REGION}a/{first}": "i-1.ec2.internal"}).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (3, 3, 20, "")
    assert {machine.id: machine.node for machine in group.machines}[first] == "i-1.ec2.internal"
    assert [(each.state, each.zone) for each in group.machines] == [("running", f"{REGION}a")] * 3


def test_groups_of_other_clusters_and_of_nobody_are_neither_seen_nor_touched(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    ours = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    made("ours")
    strangers = [
        made("another-cluster", ours | {"cluster": "large"}),
        made("nobody", {}),
        made("api-servers", {key: ours[key] for key in ("menagerie", "cluster")} | {"role": "api-servers"}),
    ]
    before = {name: alive(cloud, name) for name in strangers}
    seen = groups(small)
    assert list(seen.read()) == ["cpu"]
    seen.grow("cpu", 5)
    seen.remove("cpu", [instance for name in strangers for instance in before[name]])
    assert {name: alive(cloud, name) for name in strangers} == before
    assert changes(door) == ["SetDesiredCapacity"]


def test_what_the_clouds_filter_lets_through_is_compared_again(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    ours = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    made("ours")
    made("another-cluster", ours | {"cluster": "large"})

    def unfiltered(asked: Asked) -> Told:
        assert b"Filters" in asked.body
        return door.upstream(asked.saying(re.sub(rb"&?Filters[^&]*", b"", asked.body)))

    door.faults = [unfiltered]
    assert groups(small).read()["cpu"].size == 3


def test_a_group_grows_once_and_never_shrinks_by_it(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    made("ours")
    seen = groups(small)
    for size in (6, 6, 4):
        seen.grow("cpu", size)
    assert desired(cloud, "ours") == 6
    assert changes(door) == ["SetDesiredCapacity"]


@pytest.mark.parametrize(("most", "size", "limit"), [(20, 21, 20), (8, 9, 8)])
def test_a_group_never_grows_above_what_the_spec_and_the_cloud_allow(
    small: Cluster, door: Door, made: Any, most: int, size: int, limit: int
) -> None:
    made("ours", most=most)
    with pytest.raises(GroupError, match=f"more than its {limit}; raise pools.cpu.max"):
        groups(small).grow("cpu", size)
    assert changes(door) == []


def test_named_machines_go_and_the_group_wants_as_many_fewer(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    before = alive(cloud, made("ours", size=6))
    seen = groups(small)
    for _ in range(2):
        seen.remove("cpu", before[:2])
    assert (desired(cloud, "ours"), sorted(alive(cloud, "ours"))) == (4, sorted(before[2:]))
    assert changes(door) == ["TerminateInstanceInAutoScalingGroup"] * 2


def test_no_fewer_are_left_than_the_spec_keeps(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    before = alive(cloud, made("ours", size=4))
    with pytest.raises(GroupError, match=r"2 machines would be left, and it keeps 3 \(pools.cpu.min\)"):
        groups(small).remove("cpu", before[:2])
    assert alive(cloud, "ours") == before


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    small: Cluster, door: Door, made: Any, cloud: Any, fault: str
) -> None:
    before = alive(cloud, made("ours", size=6))
    door.faults = [upon(name, fault) for name in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup")]
    seen = groups(small)
    seen.grow("cpu", 7)
    seen.remove("cpu", before[:1])
    assert desired(cloud, "ours") == 6
    assert before[0] not in alive(cloud, "ours")


def test_an_answer_that_is_not_awss_says_nothing_of_what_was_done(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    before = alive(cloud, made("ours", size=6))
    page = Told(200, "<html>a page of some proxy")
    door.faults = [upon(name, page) for name in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup")]
    seen = groups(small)
    with pytest.raises(LostError, match="no answer from AWS that tells whether it was done: .*a page of some proxy"):
        seen.grow("cpu", 7)
    seen.remove("cpu", before[:1])
    assert desired(cloud, "ours") == 5


def test_who_is_told_to_slow_down_asks_again_after_growing_pauses(
    small: Cluster, door: Door, made: Any, cloud: Any, pauses: list[float]
) -> None:
    made("ours")
    door.faults = [
        upon(name, refusal(400, "Throttling", "Rate exceeded"))
        for name in ("DescribeAutoScalingGroups", "SetDesiredCapacity")
    ]
    groups(small).grow("cpu", 4)
    assert desired(cloud, "ours") == 4
    assert len(pauses) == 2


def test_who_is_told_so_again_and_again_gives_up_in_time(small: Cluster, door: Door, pauses: list[float]) -> None:
    door.faults = [lambda _: refusal(400, "Throttling", "Rate exceeded")]
    with pytest.raises(GroupError, match="AWS says to slow down: Throttling: Rate exceeded; the next pass asks again"):
        groups(small).read()
    assert len(door.log) == 3
    assert len(pauses) == 2 and sum(pauses) <= 45


def test_taking_a_machine_out_is_never_repeated_by_itself(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    before = alive(cloud, made("ours", size=6))
    name = "TerminateInstanceInAutoScalingGroup"
    door.faults = [lambda asked: refusal(400, "Throttling", "Rate exceeded") if action(asked) == name else None]
    with pytest.raises(GroupError, match="slow down"):
        groups(small).remove("cpu", before[:1])
    assert changes(door) == [name]
    # AWS's own failure says nothing of what was done: the group is read before it is asked again.
    door.faults = [lambda asked: refusal(500, "InternalFailure", "x") if action(asked) == name else None]
    door.log.clear()
    with pytest.raises(LostError, match="no answer from AWS that tells whether it was done: .*InternalFailure"):
        groups(small).remove("cpu", before[:1])
    asked = [action(each) for each in door.log]
    assert asked == ["DescribeAutoScalingGroups", name] * 3
    assert desired(cloud, "ours") == 6


def test_all_pages_are_read(small: Cluster, door: Door, made: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    old = {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"}
    for name in ("a", "b"):
        made(name, old, size=0)
    made("ours")
    door.faults = [in_pages_of(1, door.upstream)]
    assert groups(small).read()["cpu"].size == 3
    assert len(door.log) == 3


def test_without_the_last_page_nothing_is_believed(small: Cluster, door: Door, made: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    made("ours")
    made("zebra", {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"})
    door.faults = [
        lambda asked: refusal(400, "InvalidNextToken", "no") if "NextToken" in form_of(asked) else None,
        in_pages_of(1, door.upstream),
    ]
    with pytest.raises(GroupError, match="AWS refuses autoscaling:DescribeAutoScalingGroups: InvalidNextToken: no"):
        groups(small).read()


def test_a_list_without_an_end_is_not_believed(small: Cluster, door: Door, made: Any) -> None:
    made("ours")

    def same(asked: Asked) -> Told:
        found = door.upstream(asked.saying(asked.body.replace(b"&NextToken=x", b"")))
        return Told(200, found.body.replace("</AutoScalingGroups>", "</AutoScalingGroups><NextToken>x</NextToken>"))

    door.faults = [same]
    with pytest.raises(GroupError, match="one page of groups again and again; none is believed"):
        groups(small).read()


def test_a_pool_that_is_not_there_and_one_that_is_there_twice_are_told(small: Cluster, door: Door, made: Any) -> None:
    with pytest.raises(GroupError, match="pool cpu has no group .* of cluster small; `menagerie up small` makes it"):
        groups(small).read()
    made("ours")
    made("ours-too")
    with pytest.raises(GroupError, match="ours and ours-too both say that they are pool cpu"):
        groups(small).read()


NO_CAPACITY = (
    "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (eu-central-1a). "
    "Our system will be working on provisioning additional capacity. Launching EC2 instance failed."
)


QUOTA = "You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching EC2 instance failed."


def activities(*listed: tuple[str, str, str]) -> Told:
    members = "".join(
        f"<member><ActivityId>1</ActivityId><StatusCode>{status}</StatusCode><Description>{what}</Description>"
        f"<StatusMessage>{message}</StatusMessage><StartTime>2026-11-01T00:00:00Z</StartTime></member>"
        for status, what, message in listed
    )
    name = "DescribeScalingActivities"
    space = 'xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"'
    return Told(
        200, f"<{name}Response {space}><{name}Result><Activities>{members}</Activities></{name}Result></{name}Response>"
    )


@pytest.mark.parametrize(
    ("listed", "trouble"),
    [
        ([("Failed", "Launching a new EC2 instance.", NO_CAPACITY)], NO_CAPACITY),
        ([("Failed", "Launching a new EC2 instance.", QUOTA)], QUOTA),
        ([("Successful", "Terminating EC2 instance: i-1", ""), ("Failed", "Launching a new one", QUOTA)], QUOTA),
        ([("InProgress", "Launching a new EC2 instance: i-2", ""), ("Failed", "Launching a new one", QUOTA)], ""),
        ([], ""),
    ],
)
def test_a_group_that_does_not_grow_says_why_in_the_clouds_words(
    small: Cluster, door: Door, made: Any, listed: list[tuple[str, str, str]], trouble: str
) -> None:
    made("ours")

    def short(asked: Asked) -> Told | None:
        if action(asked) == "DescribeScalingActivities":
            return activities(*listed)
        whole = door.upstream(asked)
        return Told(200, re.sub(r"<DesiredCapacity>3", "<DesiredCapacity>4", whole.body))

    door.faults = [short]
    group = groups(small).read()["cpu"]
    assert (group.size, len(group.machines), group.trouble) == (4, 3, trouble)


def test_aws_is_asked_for_no_more_than_the_policy_allows_and_for_all_of_it(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    before = alive(cloud, made("ours", size=4))
    seen = groups(small)
    door.faults = [
        lambda asked: activities() if action(asked) == "DescribeScalingActivities" else None,
        once(lambda asked: Told(200, door.upstream(asked).body.replace("<DesiredCapacity>4", "<DesiredCapacity>5"))),
    ]
    seen.read()
    seen.grow("cpu", 6)
    seen.remove("cpu", before[:1])
    assert {f"autoscaling:{action(asked)}" for asked in door.log} == {*rights.AWS_SEES, *rights.AWS_ACTS}


def test_rights_that_are_missing_are_named_with_where_they_are(small: Cluster, door: Door) -> None:
    door.faults = [lambda _: refusal(403, "AccessDenied", "User: x is not authorized to perform: y")]
    with pytest.raises(GroupError, match=r"AccessDenied: User: x.*docs/aws-policy-autoscaler.json"):
        groups(small).read()


def test_no_request_waits_for_minutes(small: Cluster, door: Door, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made("ours")
    seen: Any = groups(small)
    seen.read()
    for tries, client in seen._api._clients.items():
        config = client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (common.CONNECT_S, common.READ_S)
        assert config.retries == {"mode": "standard", "total_max_attempts": tries}
