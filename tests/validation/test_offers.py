"""The strict account of `validate`: what a new account has after the steps of docs/start/."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.load import load_cluster
from cluster.spec import Cloud
from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import Offers, RefusalError
from stacks.validation import stages
from stacks.validation.model import Stage
from stacks.validation.offers import services, strict
from tests.simcloud.azure_support import Estate
from tests.simcloud.conftest import Api
from tests.validation.conftest import SPEC


class Remembered:
    """An account without a cloud: what it offers in each stage."""

    def __init__(self) -> None:
        self.offers = Offers()
        self.report: object = None


START = Path(__file__).resolve().parents[2] / "docs" / "start"


def words(page: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (START / page).read_text()))


def test_aws_accounts_have_the_service_linked_roles_of_the_page() -> None:
    assert words("aws.md", r"create-service-linked-role --aws-service-name (\S+)") == services(Cloud.AWS)


def test_google_projects_have_the_apis_of_the_page() -> None:
    (step,) = re.findall(r"gcloud services enable ((?:\S+ |\\\n\s*)*\S+)", (START / "google-cloud.md").read_text())
    assert set(re.findall(r"\S+\.googleapis\.com", step)) == services(Cloud.GCP)


def test_azure_subscriptions_have_every_resource_provider_and_feature_of_the_page() -> None:
    providers = words("azure.md", r"az provider register --namespace (\S+)")
    features = re.findall(r"az feature register --namespace (\S+) --name (\S+)", (START / "azure.md").read_text())
    assert features
    assert providers | {"/".join(each) for each in features} == services(Cloud.AZURE)


def without(cloud: str, service: str) -> Api:
    """Return a cloud whose account lacks one service of the strict account."""
    account = strict(Offers())
    own = Offers(services=lambda cloud_, name: name != service and account.services(cloud_, name))
    return Api(cloud, offers=own)


@pytest.mark.parametrize(
    ("cloud", "service", "token", "inputs", "refusal"),
    [
        (
            "azure",
            "Microsoft.ManagedIdentity",
            "azure-native:managedidentity:UserAssignedIdentity",
            {"resourceGroupName": "apes", "resourceName": "host"},
            "MissingSubscriptionRegistration.*az provider register --namespace Microsoft.ManagedIdentity",
        ),
        (
            "gcp",
            "cloudkms.googleapis.com",
            "gcp:kms/keyRing:KeyRing",
            {"name": "keys", "location": "europe-west4"},
            r"403: Cloud Key Management Service \(KMS\) API has not been used in project \d+.*SERVICE_DISABLED.* cloudkms",
        ),
        (
            "gcp",
            "iam.googleapis.com",
            "gcp:projects/iAMCustomRole:IAMCustomRole",
            {"roleId": "reader", "permissions": ["compute.instances.get"], "title": "reader"},
            "SERVICE_DISABLED.*gcloud services enable iam.googleapis.com",
        ),
    ],
    ids=["Azure's namespaces", "Google's APIs", "Google's API of a type of projects"],
)
def test_an_account_without_a_service_is_refused_with_the_clouds_message(
    cloud: str, service: str, token: str, inputs: dict[str, Any], refusal: str
) -> None:
    lacking, prepared = without(cloud, service), Api(cloud, offers=strict(Offers()))
    for api in (lacking, prepared):
        if cloud == "azure":
            api.create("azure-native:resources:ResourceGroup", resourceGroupName="apes")
    with pytest.raises(RefusalError, match=refusal):
        lacking.create(token, **inputs)
    prepared.create(token, **inputs)


@pytest.mark.parametrize(
    ("cloud", "token", "inputs", "refusal"),
    [
        (
            "aws",
            tokens.VPC,
            {"cidrBlock": "10.0.0.0/16"},
            "VpcLimitExceeded: The maximum number of VPCs.*larger quota than 1",
        ),
        ("aws", tokens.ADDRESS, {"domain": "vpc"}, "AddressLimitExceeded: The maximum number of addresses"),
        (
            "azure",
            "azure-native:network:PublicIPAddress",
            {"resourceGroupName": "apes", "sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static"},
            "PublicIPCountLimitReached.*Cannot create more than 1 public IP addresses",
        ),
        (
            "gcp",
            "gcp:compute/address:Address",
            {},
            r"403: Quota for gcp:compute/address:Address exceeded\. Limit: 1\.0",
        ),
    ],
    ids=["VPCs", "Elastic IP addresses", "Azure's addresses", "Google's addresses"],
)
def test_an_account_has_no_more_of_a_type_than_its_quota(
    cloud: str, token: str, inputs: dict[str, Any], refusal: str
) -> None:
    api = Api(cloud, offers=Offers(most=lambda cloud_, region, type_: 1 if type_ == token else None))
    if cloud == "azure":
        api.create("azure-native:resources:ResourceGroup", resourceGroupName="apes")
    first = api.create(token, "first", **inputs)
    with pytest.raises(RefusalError, match=refusal):
        api.create(token, "second", **inputs)
    api.delete(first)
    api.create(token, "second", **inputs)


def test_flow_logs_also_need_the_namespace_of_azure_monitor() -> None:
    with pytest.raises(RefusalError, match=r"not registered to use namespace 'Microsoft\.Insights'"):
        Estate(without("azure", "Microsoft.Insights"))
    Estate(Api("azure", offers=replace(strict(Offers()), slow_grants=0)))


@pytest.mark.parametrize(
    ("key", "path", "value"),
    [
        ("machine", "securityProfile.encryptionAtHost", True),
        ("machine", "securityProfile.encryptionAtHost", False),
        ("scale set", "virtualMachineProfile.securityProfile.encryptionAtHost", True),
    ],
)
def test_only_a_subscription_with_the_feature_takes_encryption_at_host(key: str, path: str, value: bool) -> None:
    lacking = Estate(without("azure", "Microsoft.Compute/EncryptionAtHost"))
    with pytest.raises(
        RefusalError,
        match=r"InvalidParameter.*The property 'securityProfile\.encryptionAtHost' is not valid because the "
        r"'Microsoft\.Compute/EncryptionAtHost' feature is not enabled for this subscription\."
        r".*az feature register --namespace Microsoft\.Compute --name EncryptionAtHost$",
    ):
        lacking.recreate(key, {path: value})
    Estate(Api("azure", offers=replace(strict(Offers()), slow_grants=0))).recreate(key, {path: value})


def test_a_keys_policy_may_name_only_service_linked_roles_that_exist() -> None:
    role = "arn:aws:iam::123456789012:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    policy = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": '
        f'{{"AWS": ["*", "{role}"]}}}}]}}'
    )
    with pytest.raises(
        RefusalError, match="one or more invalid principals.*--aws-service-name autoscaling.amazonaws.com"
    ):
        without("aws", "autoscaling.amazonaws.com").create(tokens.KEY, policy=policy)
    Api("aws", offers=strict(Offers())).create(tokens.KEY, policy=policy)


def test_the_stack_is_created_in_the_strict_account_and_everything_else_in_a_generous_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    account, by_stage = Remembered(), dict[Stage, Offers]()

    def remember(stage: Stage) -> Any:
        def run(account: Remembered) -> stages.Observation:
            by_stage[stage] = account.offers
            return stages.Observation("")

        return run

    monkeypatch.setattr(stages, "STAGES", tuple((stage, remember(stage)) for stage, _ in stages.STAGES))
    monkeypatch.setattr(stages, "opened", lambda *_: nullcontext(account))
    generous = Offers(vcpus=lambda _, __: 7)
    stages.validate(load_cluster(SPEC), lambda _: None, tmp_path, tmp_path, generous)
    is_strict = {stage: offers.slow_grants > 0 for stage, offers in by_stage.items()}
    assert {stage for stage, strict_ in is_strict.items() if strict_} == {Stage.PREVIEW, Stage.UP}
    assert not by_stage[Stage.UP].services("azure", "Microsoft.Sql")
    assert by_stage[Stage.UPDATE] is generous
    assert {offers.vcpus("aws", "") for offers in by_stage.values()} == {7}
