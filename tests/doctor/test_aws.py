"""The questions about an account of AWS, over HTTP: moto, and what it lacks as AWS documents it."""

from __future__ import annotations

import json

import pytest

from cluster.spec import Cluster
from operations.doctor.aws.quotas import family_of
from operations.doctor.choose import cloud_questions
from operations.doctor.model import State
from stacks.aws import permissions
from stacks.aws.launch import PARAMETER
from tests.doctor.fake_aws import ACCOUNT, DEBIAN, REGION, Amazon, action, refusal
from tests.doctor.support import answers, example, not_ok
from tests.scheduling.clouds.door import Door, Fault, Request, Response

READS = ("Describe", "Get", "Head", "HEAD", "List", "Simulate")


@pytest.fixture(scope="module")
def small() -> Cluster:
    return example("aws-small")


def upon(name: str, result: Response | str) -> Fault:
    return lambda request: result if action(request) == name else None


def test_a_ready_account_is_ok_and_is_only_read(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    outcomes = answers(small)
    assert not_ok(outcomes) == {}
    assert outcomes["account: identity"].finding == f"arn:aws:sts::{ACCOUNT}:user/moto in account {ACCOUNT}"
    assert outcomes["quotas: vCPUs: Standard"].finding == f"500 left of 500 vCPUs in {REGION}"
    assert outcomes["quotas: vCPUs: Standard"].needed == (
        "34 vCPUs at the start, 172 at most: API servers (m7i.large) 2 to 3 × 2, etcd main (m7i.large) 3 × 2, "
        "pool cpu (m7i.2xlarge) 3 to 20 × 8"
    )
    assert outcomes[f"images: image: resolve:ssm:{PARAMETER}"].finding.startswith(DEBIAN)
    sent = {action(request) for request in aws_door.log}
    assert len(sent) > 12
    assert {name for name in sent if not name.startswith(READS)} == set()
    listed = {call.partition(":")[2] for each in cloud_questions(small, "") for call in each.calls}
    assert sent - {"HEAD"} | {"HeadBucket"} == listed


def test_a_denied_action_is_wrong_with_the_commands_that_grant_it(
    small: Cluster, amazon: Amazon, aws_door: Door
) -> None:
    amazon.denied = frozenset({"ec2:RunInstances", "iam:PassRole"})
    answer = answers(small, "rights")["account: rights"]
    assert answer.state is State.WRONG
    assert "denied: ec2:RunInstances, iam:PassRole" in answer.finding
    assert answer.mend[1] == (
        f"aws iam attach-user-policy --user-name moto --policy-arn arn:aws:iam::{ACCOUNT}:policy/menagerie-ec2"
    )


def test_what_the_organisation_denies_is_marked(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    amazon.denied, amazon.by_organisation = frozenset({"kms:CreateKey"}), True
    assert "kms:CreateKey (by the organisation)" in answers(small, "rights")["account: rights"].finding


def test_a_simulation_has_the_names_of_the_cluster_and_the_conditions_of_the_policy(
    small: Cluster, amazon: Amazon, aws_door: Door
) -> None:
    answers(small, "rights")
    forms = [
        {value for key, value in form.items() if key.startswith(("Resource", "Context"))} for form in amazon.simulated
    ]
    assert any(f"arn:aws:s3:::small-backups-{ACCOUNT}" in values for values in forms)
    assert any(
        {"iam:PermissionsBoundary", f"arn:aws:iam::{ACCOUNT}:policy/menagerie/menagerie-hosts"} <= v for v in forms
    )
    assert any({"iam:PassedToService", "ec2.amazonaws.com"} <= values for values in forms)
    asked = {value for form in amazon.simulated for key, value in form.items() if key.startswith("ActionNames")}
    assert "ec2:RunInstances" in asked
    assert not any(name.startswith("elasticfilesystem:") or "VpnConnection" in name for name in asked)


def test_a_session_is_simulated_as_its_role(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    amazon.client("iam").create_role(RoleName="deployer", Path="/people/", AssumeRolePolicyDocument="{}")
    caller = (
        "<GetCallerIdentityResponse><GetCallerIdentityResult>"
        f"<Arn>arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me</Arn><UserId>x</UserId><Account>{ACCOUNT}</Account>"
        "</GetCallerIdentityResult></GetCallerIdentityResponse>"
    )
    aws_door.faults = [upon("GetCallerIdentity", Response(200, caller, {"Content-Type": "text/xml"}))]
    assert answers(small, "rights")["account: rights"].state is State.OK
    assert {form["PolicySourceArn"] for form in amazon.simulated} == {f"arn:aws:iam::{ACCOUNT}:role/people/deployer"}


def test_a_quota_that_is_too_small_is_wrong_with_its_arithmetic_and_the_request(
    small: Cluster, amazon: Amazon, aws_door: Door
) -> None:
    amazon.client("ec2").run_instances(ImageId=DEBIAN, InstanceType="m7i.2xlarge", MinCount=3, MaxCount=3)
    amazon.quotas["L-1216C47A"] = 100
    answer = answers(small, "vCPUs")["quotas: vCPUs: Standard"]
    assert answer.state is State.WRONG
    assert answer.finding == f"76 left of 100 vCPUs in {REGION}: enough to start, too few to grow"
    assert answer.mend == (
        (
            "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-1216C47A "
            f"--desired-value 196 --region {REGION}"
        ),
    )
    amazon.quotas["L-1216C47A"] = 40
    assert answers(small, "vCPUs")["quotas: vCPUs: Standard"].finding.endswith(
        "16 left of 40 vCPUs in eu-central-1: too few to start"
    )


def test_the_clusters_own_machines_do_not_count_twice(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    own = [{"Key": "menagerie", "Value": "true"}, {"Key": "cluster", "Value": "small"}]
    amazon.client("ec2").run_instances(
        ImageId=DEBIAN,
        InstanceType="m7i.2xlarge",
        MinCount=2,
        MaxCount=2,
        TagSpecifications=[{"ResourceType": "instance", "Tags": own}],
    )
    assert answers(small, "vCPUs")["quotas: vCPUs: Standard"].finding == f"500 left of 500 vCPUs in {REGION}"


def test_a_missing_service_linked_role_and_a_stale_policy_are_wrong(
    small: Cluster, amazon: Amazon, aws_door: Door
) -> None:
    iam = amazon.client("iam")
    iam.delete_role(RoleName="AWSServiceRoleForNATGateway")
    arn = f"arn:aws:iam::{ACCOUNT}:policy/menagerie/menagerie-hosts"
    older = json.dumps({"Version": "2012-10-17", "Statement": json.loads(permissions.boundary())["Statement"][:1]})
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=older, SetAsDefault=True)
    outcomes = answers(small, "service-linked roles", "hosts' policy")
    role = outcomes["registrations: service-linked roles: ec2-nat-gateway.amazonaws.com"]
    assert (role.state, role.mend) == (
        State.WRONG,
        ("aws iam create-service-linked-role --aws-service-name ec2-nat-gateway.amazonaws.com",),
    )
    policy = outcomes["account: hosts' policy"]
    assert policy.state is State.WRONG
    assert policy.mend[0].startswith(f"aws iam create-policy-version --policy-arn {arn} --set-as-default")


def test_a_missing_policy_of_hosts_is_wrong(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    amazon.client("iam").delete_policy(PolicyArn=f"arn:aws:iam::{ACCOUNT}:policy/menagerie/menagerie-hosts")
    policy = answers(small, "hosts' policy")["account: hosts' policy"]
    assert (policy.state, policy.mend[0].split()[:3]) == (State.WRONG, ["aws", "iam", "create-policy"])


def test_a_type_that_a_zone_does_not_offer_is_wrong_and_a_pool_needs_one_zone(aws_door: Door) -> None:
    """In the region, moto offers g7e.12xlarge in two of three zones."""
    outcomes = answers(example("aws-small", machine="g7e.12xlarge"), "machine types")
    answer = outcomes["places: machine types: g7e.12xlarge for API servers"]
    assert answer.state is State.WRONG
    assert answer.finding == "not offered in euc1-az1; it is offered in euc1-az2, euc1-az3"
    assert "--filters Name=instance-type,Values=g7e.12xlarge" in answer.mend[0]
    assert outcomes["places: machine types: m7i.2xlarge for pool cpu"].state is State.OK


def test_a_zone_that_the_account_lacks_is_wrong(aws_door: Door) -> None:
    answer = answers(example("aws-small", zones=("euc1-az1", "euc1-az9")), "zones")["places: zones"]
    assert (answer.state, "this account has no euc1-az9" in answer.finding) == (State.WRONG, True)


def test_a_missing_image_and_one_of_another_architecture_are_wrong(amazon: Amazon, aws_door: Door) -> None:
    outcomes = answers(example("aws-small", image="ami-0123456789abcdef0"), "image")
    assert outcomes["images: image: ami-0123456789abcdef0"].finding == f"there is no such image in {REGION}"
    machine = amazon.client("ec2").run_instances(ImageId=DEBIAN, InstanceType="m7i.large", MinCount=1, MaxCount=1)
    own = amazon.client("ec2").create_image(InstanceId=machine["Instances"][0]["InstanceId"], Name="own")["ImageId"]
    outcomes = answers(example("aws-small", image=own, machine="m7g.large"), "image")
    answer = outcomes[f"images: image: {own}"]
    assert answer.state is State.WRONG
    assert answer.finding == f"{own} is for x86_64, which API servers (m7g.large) cannot boot"


def test_taken_names_are_wrong_and_a_refused_bucket_is_unknown(small: Cluster, amazon: Amazon, aws_door: Door) -> None:
    bucket = f"small-backups-{ACCOUNT}"
    amazon.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    tags = [{"Key": "menagerie", "Value": "true"}, {"Key": "cluster", "Value": "small"}]
    amazon.client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}])

    def others(request: Request) -> Response | None:
        return Response(403, "") if request.method == "HEAD" and "-audit-" in f"{request.host}{request.path}" else None

    aws_door.faults = [others]
    outcomes = answers(small, "buckets", "network")
    assert outcomes["names: buckets: backups"].state is State.WRONG
    assert outcomes["names: buckets: backups"].mend[0].startswith(f"aws s3 rb s3://{bucket}")
    assert outcomes["names: buckets: audit"].state is State.UNKNOWN
    assert outcomes["names: buckets: logs"].state is State.OK
    assert outcomes["names: network"].state is State.WRONG


def test_a_refused_call_is_unknown_with_the_right_that_is_lacking_and_the_others_go_on(
    small: Cluster, aws_door: Door
) -> None:
    aws_door.faults = [
        upon("DescribeInstanceTypeOfferings", refusal(403, "UnauthorizedOperation")),
        upon("SimulatePrincipalPolicy", refusal(403, "AccessDenied")),
    ]
    outcomes = answers(small, "identity", "rights", "machine types", "zones")
    assert {name for name, answer in outcomes.items() if answer.state is not State.OK} == {
        "account: rights",
        "places: machine types",
    }
    assert outcomes["account: rights"].state is State.UNKNOWN
    assert outcomes["account: rights"].finding.endswith("; it needs iam:SimulatePrincipalPolicy, iam:GetRole")
    assert outcomes["places: machine types"].finding.endswith("; it needs ec2:DescribeInstanceTypeOfferings")


def test_throttled_calls_and_lost_answers_are_repeated_and_then_unknown(
    small: Cluster, aws_door: Door, pauses: list[float]
) -> None:
    aws_door.faults = [
        upon("DescribeAvailabilityZones", refusal(503, "RequestLimitExceeded")),
        upon("DescribeVpcs", "dead"),
    ]
    outcomes = answers(small, "identity", "zones", "network")
    assert outcomes["places: zones"].state is State.UNKNOWN
    assert "RequestLimitExceeded" in outcomes["places: zones"].finding
    assert [action(request) for request in aws_door.log].count("DescribeAvailabilityZones") == 3
    assert outcomes["names: network"].finding.startswith("no answer from AWS")
    assert outcomes["account: identity"].state is State.OK


@pytest.mark.parametrize(
    ("machine", "spot", "family"),
    [
        ("m7i.large", False, "Standard"),
        ("im4gn.large", False, "Standard"),
        ("p5.48xlarge", False, "P"),
        ("p5en.48xlarge", True, "P5"),
        ("p4d.24xlarge", True, "P"),
        ("g6e.xlarge", True, "G and VT"),
        ("u-6tb1.112xlarge", False, "High Memory"),
        ("trn2.48xlarge", False, "Trn"),
    ],
)
def test_a_type_belongs_to_the_family_that_counts_it(machine: str, spot: bool, family: str) -> None:
    assert family_of(machine, spot=spot) == family
