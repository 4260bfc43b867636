"""Auto Scaling groups of AWS: moto as a server, behind a door that compares signatures and spoils answers."""

from __future__ import annotations

import http.client
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from cluster.load import load_cluster
from cluster.spec import Cluster
from scheduling.autoscaler.clouds import rights
from scheduling.autoscaler.clouds.aws.groups import AwsGroups
from scheduling.autoscaler.clouds.http import Http, LostError
from scheduling.autoscaler.groups import GroupError
from stacks.aws.workers import autoscaler_tags
from tests.scheduling.clouds.door import Asked, Door, Fault, Told, once, served
from tests.stacks.fake_stores import moto

ROOT = Path(__file__).resolve().parents[3]
REGION = "eu-central-1"
KEYS = Credentials("a-key", "a-secret", "a-token")
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "a-secret", "AWS_SESSION_TOKEN": "a-token"}


def form_of(asked: Asked) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(asked.body.decode()))


def action(asked: Asked) -> str:
    return form_of(asked).get("Action", "")


def upon(name: str, made: Told | str) -> Fault:
    """The first time that the action is asked for."""
    return once(lambda asked: made if action(asked) == name else None)


def refusal(status: int, code: str, message: str) -> Told:
    body = (
        '<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
    )
    return Told(status, body)


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[Any, Any, tuple[str, int]]]:
    server = moto()
    at = server.get_host_and_port()
    keys = {"aws_access_key_id": "a-key", "aws_secret_access_key": "a-secret", "region_name": REGION}
    url = f"http://{at[0]}:{at[1]}"
    yield boto3.client("autoscaling", endpoint_url=url, **keys), boto3.client("ec2", endpoint_url=url, **keys), at
    server.stop()


def relay(at: tuple[str, int]) -> Any:
    """To moto, if the signature is what botocore makes of the request."""

    def ask(asked: Asked) -> Told:
        if asked.headers["authorization"] != proof(asked):
            return refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
        connection = http.client.HTTPConnection(*at)
        connection.request(asked.method, asked.path, asked.body, dict(asked.headers))
        answer = connection.getresponse()
        made = Told(answer.status, answer.read().decode())
        connection.close()
        return made

    return ask


def proof(asked: Asked) -> str:
    sent = {key.lower(): value for key, value in asked.headers.items()}
    names = re.findall(r"SignedHeaders=([^,]+)", sent["authorization"])[0].split(";")
    request = AWSRequest("POST", f"http://{sent['host']}/", {name: sent[name] for name in names}, asked.body)
    request.context["timestamp"] = sent["x-amz-date"]
    signer = SigV4Auth(KEYS, "autoscaling", REGION)
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    signer._inject_signature_to_request(request, signature)
    return str(request.headers["Authorization"])


@pytest.fixture
def door(cloud: tuple[Any, Any, tuple[str, int]]) -> Iterator[Door]:
    with served(Door(relay(cloud[2]))) as made:
        yield made


@pytest.fixture(scope="module")
def small() -> Cluster:
    return load_cluster(ROOT / "docs/examples/aws-small.yaml")


@pytest.fixture
def made(cloud: tuple[Any, Any, tuple[str, int]], small: Cluster) -> Iterator[Any]:
    """Makes groups as the stack does; they end with the test."""
    scaling, ec2, _ = cloud
    template = ec2.create_launch_template(
        LaunchTemplateName="workers", LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "m7i.2xlarge"}
    )["LaunchTemplate"]["LaunchTemplateId"]
    names: list[str] = []

    def make(name: str, tags: Mapping[str, str] | None = None, size: int = 3, most: int = 20) -> str:
        found = autoscaler_tags(small, "cpu", small.spec.pools["cpu"]) if tags is None else tags
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=most,
            DesiredCapacity=size,
            LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
            AvailabilityZones=[f"{REGION}a"],
            Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": False} for key, value in found.items()],
        )
        names.append(name)
        return name

    yield make
    for name in names:
        scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    ec2.delete_launch_template(LaunchTemplateId=template)


def groups(cluster: Cluster, door: Door, nodes: Mapping[str, str] | None = None, **more: Any) -> AwsGroups:
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL_AUTO_SCALING": door.url}
    return AwsGroups(cluster, Http(pause=lambda _: None), lambda: nodes or {}, environment, **more)


def desired(cloud: tuple[Any, ...], name: str) -> int:
    (found,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return int(found["DesiredCapacity"])


def alive(cloud: tuple[Any, ...], name: str) -> list[str]:
    (found,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return [each["InstanceId"] for each in found["Instances"]]


def changes(door: Door) -> list[str]:
    return [action(asked) for asked in door.log if not action(asked).startswith("Describe")]


def test_a_group_is_read_with_its_machines_and_the_names_that_their_nodes_have(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    first, *_ = alive(cloud, made("ours"))
    group = groups(small, door, {f"aws:///{REGION}a/{first}": "i-1.ec2.internal"}).read()["cpu"]
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
    seen = groups(small, door)
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

    seen = groups(small, door)
    every = seen._api.groups({})
    assert len(every) == 2
    seen._api.groups = lambda tags: every  # type: ignore[method-assign]
    assert seen.read()["cpu"].size == 3


def test_a_group_grows_once_and_never_shrinks_by_it(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    made("ours")
    seen = groups(small, door)
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
        groups(small, door).grow("cpu", size)
    assert changes(door) == []


def test_named_machines_go_and_the_group_wants_as_many_fewer(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    before = alive(cloud, made("ours", size=6))
    seen = groups(small, door)
    for _ in range(2):
        seen.remove("cpu", before[:2])
    assert (desired(cloud, "ours"), sorted(alive(cloud, "ours"))) == (4, sorted(before[2:]))
    assert changes(door) == ["TerminateInstanceInAutoScalingGroup"] * 2


def test_no_fewer_are_left_than_the_spec_keeps(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    before = alive(cloud, made("ours", size=4))
    with pytest.raises(GroupError, match=r"2 machines would be left, and it keeps 3 \(pools.cpu.min\)"):
        groups(small, door).remove("cpu", before[:2])
    assert alive(cloud, "ours") == before


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    small: Cluster, door: Door, made: Any, cloud: Any, fault: str
) -> None:
    before = alive(cloud, made("ours", size=6))
    door.faults = [upon(name, fault) for name in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup")]
    seen = groups(small, door)
    seen.grow("cpu", 7)
    seen.remove("cpu", before[:1])
    assert desired(cloud, "ours") == 6
    assert before[0] not in alive(cloud, "ours")


def test_who_is_told_to_slow_down_asks_again(small: Cluster, door: Door, made: Any, cloud: Any) -> None:
    made("ours")
    door.faults = [
        upon(name, refusal(400, "Throttling", "Rate exceeded"))
        for name in ("DescribeAutoScalingGroups", "SetDesiredCapacity")
    ]
    groups(small, door).grow("cpu", 4)
    assert desired(cloud, "ours") == 4


def test_who_is_told_so_for_long_gives_up_in_time(small: Cluster, door: Door) -> None:
    door.faults = [lambda _: refusal(400, "Throttling", "Rate exceeded")]
    waited: list[float] = []
    seen = groups(small, door)
    seen._api._http = Http(pause=waited.append, clock=lambda: sum(waited))
    with pytest.raises(LostError, match="slow down, .* times: HTTP 400 .*Rate exceeded.*next pass"):
        seen.read()
    assert 20 < sum(waited) <= 45


def test_all_pages_are_read(small: Cluster, door: Door, made: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    old = {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"}
    for name in ("a", "b"):
        made(name, old, size=0)
    made("ours")
    assert groups(small, door, page=1).read()["cpu"].size == 3
    assert len(door.log) == 3


def test_without_the_last_page_nothing_is_believed(small: Cluster, door: Door, made: Any) -> None:
    tags = autoscaler_tags(small, "cpu", small.spec.pools["cpu"])
    made("ours")
    made("zebra", {**tags, "k8s.io/cluster-autoscaler/node-template/label/menagerie/pool": "former"})
    door.faults = [lambda asked: refusal(400, "InvalidNextToken", "no") if "NextToken" in form_of(asked) else None]
    with pytest.raises(GroupError, match="AWS refuses autoscaling:DescribeAutoScalingGroups: InvalidNextToken: no"):
        groups(small, door, page=1).read()


def test_a_pool_that_is_not_there_and_one_that_is_there_twice_are_told(small: Cluster, door: Door, made: Any) -> None:
    with pytest.raises(GroupError, match="pool cpu has no group .* of cluster small; `menagerie up small` makes it"):
        groups(small, door).read()
    made("ours")
    made("ours-too")
    with pytest.raises(GroupError, match="ours and ours-too both say that they are pool cpu"):
        groups(small, door).read()


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
    group = groups(small, door).read()["cpu"]
    assert (group.size, len(group.machines), group.trouble) == (4, 3, trouble)


def test_aws_is_asked_for_no_more_than_the_policy_allows_and_for_all_of_it(
    small: Cluster, door: Door, made: Any, cloud: Any
) -> None:
    before = alive(cloud, made("ours", size=4))
    seen = groups(small, door)
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
        groups(small, door).read()


def test_without_credentials_it_is_said_how_to_get_some(small: Cluster, door: Door) -> None:
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9", "PATH": "/nowhere"}
    seen = AwsGroups(small, Http(), dict, environment)
    with pytest.raises(GroupError, match="no credentials for AWS: in a pod, .*AWS_PROFILE.*"):
        seen.read()


def test_half_a_key_is_refused(small: Cluster) -> None:
    with pytest.raises(GroupError, match="set the other too"):
        AwsGroups(small, Http(), dict, {"AWS_ACCESS_KEY_ID": "x"}).read()


STS = (
    '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>'
    "<Credentials><AccessKeyId>a-key</AccessKeyId><SecretAccessKey>a-secret</SecretAccessKey><SessionToken>a-token</SessionToken>"
    "<Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
    "</AssumeRoleWithWebIdentityResponse>"
)


def test_a_pod_proves_who_it_is_by_the_token_of_its_service_account(
    small: Cluster, door: Door, made: Any, tmp_path: Path
) -> None:
    made("ours")
    token = tmp_path / "token"
    token.write_text("e.y.J\n")
    door.faults = [lambda asked: Told(200, STS) if action(asked) == "AssumeRoleWithWebIdentity" else None]
    environment = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/autoscaler",
        "AWS_ENDPOINT_URL_STS": door.url,
        "AWS_ENDPOINT_URL_AUTO_SCALING": door.url,
    }
    seen = AwsGroups(small, Http(), dict, environment)
    for _ in range(2):
        assert seen.read()["cpu"].size == 3
    asked = [form_of(each) for each in door.log if action(each) == "AssumeRoleWithWebIdentity"]
    assert [(each["WebIdentityToken"], each["RoleArn"]) for each in asked] == [
        ("e.y.J", "arn:aws:iam::1:role/autoscaler")
    ]


def test_credentials_that_ended_early_are_got_anew_once(small: Cluster, door: Door, made: Any) -> None:
    made("ours")
    door.faults = [
        once(lambda _: refusal(403, "ExpiredToken", "The security token included in the request is expired"))
    ]
    assert groups(small, door).read()["cpu"].size == 3
    door.faults = [lambda _: refusal(403, "ExpiredToken", "The security token included in the request is expired")]
    with pytest.raises(GroupError, match="ExpiredToken.*log in again"):
        groups(small, door).read()
