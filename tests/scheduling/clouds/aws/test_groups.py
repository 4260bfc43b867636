"""Auto Scaling groups of AWS, with its own libraries through the door."""

from __future__ import annotations

import re
from typing import Any

import pytest

from clients import clouds
from cluster.spec import Cluster
from controllers.autoscaler.clouds.aws import rights
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
from tests.scheduling.clouds.door import Door, Request, Response, once


def test_a_group_is_read_with_its_machines_and_the_names_of_their_nodes(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    first, *_ = alive(cloud, make_group("ours"))
    group = groups(small, {f"aws:///{REGION}a/{first}": "i-1.ec2.internal"}).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (3, 3, 20, "")
    assert {machine.id: machine.node for machine in group.machines}[first] == "i-1.ec2.internal"
    assert [(each.state, each.zone) for each in group.machines] == [("running", f"{REGION}a")] * 3


def test_groups_of_other_clusters_and_unmarked_ones_are_ignored(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    ours = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    make_group("ours")
    strangers = [
        make_group("another-cluster", ours | {"cluster": "large"}),
        make_group("nobody", {}),
        make_group("api-servers", {key: ours[key] for key in ("menagerie", "cluster")} | {"role": "api-servers"}),
    ]
    before = {name: alive(cloud, name) for name in strangers}
    pools = groups(small)
    assert list(pools.read()) == ["cpu"]
    pools.grow("cpu", 5)
    pools.remove("cpu", [instance for name in strangers for instance in before[name]])
    assert {name: alive(cloud, name) for name in strangers} == before
    assert changes(door) == ["SetDesiredCapacity"]


def test_groups_that_the_clouds_filter_lets_through_are_checked_again(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    ours = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    make_group("ours")
    make_group("another-cluster", ours | {"cluster": "large"})

    def unfiltered(request: Request) -> Response:
        assert b"Filters" in request.body
        return door.upstream(request.with_body(re.sub(rb"&?Filters[^&]*", b"", request.body)))

    door.faults = [unfiltered]
    assert groups(small).read()["cpu"].size == 3


def test_growing_a_group_is_idempotent_and_never_shrinks_it(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    make_group("ours")
    pools = groups(small)
    for size in (6, 6, 4):
        pools.grow("cpu", size)
    assert desired(cloud, "ours") == 6
    assert changes(door) == ["SetDesiredCapacity"]


@pytest.mark.parametrize(("most", "size", "limit"), [(20, 21, 20), (8, 9, 8)])
def test_a_group_never_grows_above_the_maximum_of_the_spec_and_the_cloud(
    small: Cluster, door: Door, make_group: Any, most: int, size: int, limit: int
) -> None:
    make_group("ours", most=most)
    with pytest.raises(GroupError, match=f"exceed its maximum of {limit}; raise pools.cpu.max"):
        groups(small).grow("cpu", size)
    assert changes(door) == []


def test_only_named_machines_are_removed_and_the_group_shrinks(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    before = alive(cloud, make_group("ours", size=6))
    pools = groups(small)
    for _ in range(2):
        pools.remove("cpu", before[:2])
    assert (desired(cloud, "ours"), sorted(alive(cloud, "ours"))) == (4, sorted(before[2:]))
    assert changes(door) == ["TerminateInstanceInAutoScalingGroup"] * 2


def test_a_pool_never_shrinks_below_its_minimum(small: Cluster, door: Door, make_group: Any, cloud: Any) -> None:
    before = alive(cloud, make_group("ours", size=4))
    with pytest.raises(GroupError, match=r"2 machines would be left, but its minimum is 3 \(pools.cpu.min\)"):
        groups(small).remove("cpu", before[:2])
    assert alive(cloud, "ours") == before


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_retry_after_a_lost_answer_changes_nothing_more(
    small: Cluster, door: Door, make_group: Any, cloud: Any, fault: str
) -> None:
    before = alive(cloud, make_group("ours", size=6))
    door.faults = [upon(name, fault) for name in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup")]
    pools = groups(small)
    pools.grow("cpu", 7)
    pools.remove("cpu", before[:1])
    assert desired(cloud, "ours") == 6
    assert before[0] not in alive(cloud, "ours")


def test_after_an_answer_that_is_not_from_aws_the_result_is_unknown(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    before = alive(cloud, make_group("ours", size=6))
    page = Response(200, "<html>a page of some proxy")
    door.faults = [upon(name, page) for name in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup")]
    pools = groups(small)
    with pytest.raises(LostError, match="no answer from AWS, so the result is unknown: .*a page of some proxy"):
        pools.grow("cpu", 7)
    pools.remove("cpu", before[:1])
    assert desired(cloud, "ours") == 5


def test_throttled_requests_are_retried(
    small: Cluster, door: Door, make_group: Any, cloud: Any, pauses: list[float]
) -> None:
    make_group("ours")
    door.faults = [
        upon(name, refusal(400, "Throttling", "Rate exceeded"))
        for name in ("DescribeAutoScalingGroups", "SetDesiredCapacity")
    ]
    groups(small).grow("cpu", 4)
    assert desired(cloud, "ours") == 4
    assert len(pauses) == 2


def test_retries_of_throttled_requests_end_in_time(small: Cluster, door: Door, pauses: list[float]) -> None:
    door.faults = [lambda _: refusal(400, "Throttling", "Rate exceeded")]
    with pytest.raises(
        GroupError, match="AWS throttles requests: Throttling: Rate exceeded; the next pass tries again"
    ):
        groups(small).read()
    assert len(door.log) == 3
    assert len(pauses) == 2 and sum(pauses) <= 45


def test_a_removal_is_never_retried_automatically(small: Cluster, door: Door, make_group: Any, cloud: Any) -> None:
    before = alive(cloud, make_group("ours", size=6))
    name = "TerminateInstanceInAutoScalingGroup"
    door.faults = [lambda request: refusal(400, "Throttling", "Rate exceeded") if action(request) == name else None]
    with pytest.raises(GroupError, match="throttles requests"):
        groups(small).remove("cpu", before[:1])
    assert changes(door) == [name]
    # An internal failure of AWS leaves the result unknown: the group is read before the retry.
    door.faults = [lambda request: refusal(500, "InternalFailure", "x") if action(request) == name else None]
    door.log.clear()
    with pytest.raises(LostError, match="no answer from AWS, so the result is unknown: .*InternalFailure"):
        groups(small).remove("cpu", before[:1])
    actions = [action(each) for each in door.log]
    assert actions == ["DescribeAutoScalingGroups", name] * 3
    assert desired(cloud, "ours") == 6


def test_all_pages_are_read(small: Cluster, door: Door, make_group: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    old = {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"}
    for name in ("a", "b"):
        make_group(name, old, size=0)
    make_group("ours")
    door.faults = [in_pages_of(1, door.upstream)]
    assert groups(small).read()["cpu"].size == 3
    assert len(door.log) == 3


def test_without_the_last_page_the_list_is_not_used(small: Cluster, door: Door, make_group: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    make_group("ours")
    make_group("zebra", {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"})
    door.faults = [
        lambda request: refusal(400, "InvalidNextToken", "no") if "NextToken" in form_of(request) else None,
        in_pages_of(1, door.upstream),
    ]
    with pytest.raises(GroupError, match="AWS refuses autoscaling:DescribeAutoScalingGroups: InvalidNextToken: no"):
        groups(small).read()


def test_an_endless_list_is_not_used(small: Cluster, door: Door, make_group: Any) -> None:
    make_group("ours")

    def same(request: Request) -> Response:
        page = door.upstream(request.with_body(request.body.replace(b"&NextToken=x", b"")))
        return Response(200, page.body.replace("</AutoScalingGroups>", "</AutoScalingGroups><NextToken>x</NextToken>"))

    door.faults = [same]
    with pytest.raises(GroupError, match="the same page of groups repeatedly; the list is not used"):
        groups(small).read()


def test_missing_and_duplicate_groups_are_reported(small: Cluster, door: Door, make_group: Any) -> None:
    with pytest.raises(GroupError, match="pool cpu has no group .* of cluster small; `menagerie up small` creates it"):
        groups(small).read()
    make_group("ours")
    make_group("ours-too")
    with pytest.raises(GroupError, match="ours and ours-too are all marked as pool cpu"):
        groups(small).read()


NO_CAPACITY = (
    "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (eu-central-1a). "
    "Our system will be working on provisioning additional capacity. Launching EC2 instance failed."
)


QUOTA = "You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching EC2 instance failed."


def activities(*listed: tuple[str, str, str]) -> Response:
    members = "".join(
        f"<member><ActivityId>1</ActivityId><StatusCode>{status}</StatusCode><Description>{what}</Description>"
        f"<StatusMessage>{message}</StatusMessage><StartTime>2026-11-01T00:00:00Z</StartTime></member>"
        for status, what, message in listed
    )
    name = "DescribeScalingActivities"
    space = 'xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"'
    return Response(
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
def test_a_group_that_does_not_grow_has_the_clouds_reason(
    small: Cluster, door: Door, make_group: Any, listed: list[tuple[str, str, str]], trouble: str
) -> None:
    make_group("ours")

    def short(request: Request) -> Response | None:
        if action(request) == "DescribeScalingActivities":
            return activities(*listed)
        whole = door.upstream(request)
        return Response(200, re.sub(r"<DesiredCapacity>3", "<DesiredCapacity>4", whole.body))

    door.faults = [short]
    group = groups(small).read()["cpu"]
    assert (group.size, len(group.machines), group.trouble) == (4, 3, trouble)


def test_awss_policy_has_exactly_the_rights_that_are_used(
    small: Cluster, door: Door, make_group: Any, cloud: Any
) -> None:
    before = alive(cloud, make_group("ours", size=4))
    pools = groups(small)
    door.faults = [
        lambda request: activities() if action(request) == "DescribeScalingActivities" else None,
        once(
            lambda request: Response(
                200, door.upstream(request).body.replace("<DesiredCapacity>4", "<DesiredCapacity>5")
            )
        ),
    ]
    pools.read()
    pools.grow("cpu", 6)
    pools.remove("cpu", before[:1])
    assert {f"autoscaling:{action(request)}" for request in door.log} == {*rights.SEES, *rights.ACTS}


def test_missing_rights_are_reported_with_their_document(small: Cluster, door: Door) -> None:
    door.faults = [lambda _: refusal(403, "AccessDenied", "User: x is not authorized to perform: y")]
    with pytest.raises(GroupError, match=r"AccessDenied: User: x.*docs/aws-policy-autoscaler.json"):
        groups(small).read()


def test_no_request_waits_for_minutes(
    small: Cluster, door: Door, make_group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group("ours")
    pools: Any = groups(small)
    pools.read()
    for tries, client in pools._api._clients.items():
        config = client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (clouds.CONNECT_S, clouds.READ_S)
        assert config.retries == {"mode": "standard", "total_max_attempts": tries}
