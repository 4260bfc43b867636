"""Inputs are compared with the SDKs' own classes: for all types, without a rule for any of them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.schema import mistakes
from sandbox.simcloud.values import Secret, Unknown

INSTANCE = {"ami": "ami-1", "instanceType": "m7i.large"}
GROUP = "aws:lb/targetGroup:TargetGroup"
VAULT = "azure-native:keyvault:Vault"
OF_VAULT = {"resourceGroupName": "g", "properties": {"sku": {"family": "A", "name": "standard"}, "tenantId": "t"}}
RULE = "gcp:compute/forwardingRule:ForwardingRule"
NETWORK = "azure-native:network:VirtualNetwork"


@pytest.fixture(scope="module", autouse=True)
def _sdks() -> None:
    """Import the classes of the types below, as a program does. It takes seconds, so not while tests are collected."""
    import pulumi_aws as aws
    import pulumi_gcp as gcp
    from pulumi_azure_native import compute, keyvault, network, storage

    assert all((aws.ec2.Instance, aws.lb.TargetGroup, gcp.compute.Instance))
    assert all((compute.Disk, keyvault.Vault, network.Subnet, storage.Blob))


def messages(token: str, inputs: dict[str, Any]) -> list[str]:
    return [f"{mistake.path} {mistake.text}" for mistake in mistakes(token, inputs)]


def of_vault(**sku: Any) -> dict[str, Any]:
    return {**OF_VAULT, "properties": {**OF_VAULT["properties"], "sku": {"family": "A", "name": "standard", **sku}}}


WRONG = [
    ("aws:ec2/instance:Instance", {**INSTANCE, "size": "large"}, "size is not a property; there are: ami, "),
    ("aws:ec2/instance:Instance", {**INSTANCE, "instance_type": "m"}, "instance_type is not a property"),
    ("aws:ec2/instance:Instance", {**INSTANCE, "ami": ["ami-1"]}, "ami must be text, not a list"),
    ("aws:ec2/instance:Instance", {**INSTANCE, "tags": ["a"]}, "tags must be a mapping, not a list"),
    (
        "aws:ec2/instance:Instance",
        {**INSTANCE, "sourceDestCheck": "no"},
        "sourceDestCheck must be true or false, not 'no'",
    ),
    (
        "aws:ec2/instance:Instance",
        {**INSTANCE, "metadataOptions": {"httpTokens": "sometimes"}},
        "metadataOptions.httpTokens must be one of optional, required, not 'sometimes'",
    ),
    (
        "aws:ec2/instance:Instance",
        {**INSTANCE, "metadataOptions": {"httpPutResponseHopLimit": 1.5}},
        "metadataOptions.httpPutResponseHopLimit must be a whole number, not 1.5",
    ),
    ("aws:ec2/instance:Instance", {**INSTANCE, "ebsBlockDevices": {}}, "ebsBlockDevices must be a list, not an object"),
    ("aws:ec2/instance:Instance", {**INSTANCE, "ebsBlockDevices": [{}]}, "ebsBlockDevices[0].deviceName is required"),
    ("aws:ec2/subnet:Subnet", {"cidrBlock": "10.0.0.0/24"}, "vpcId is required"),
    (GROUP, {"protocol": "GOLD"}, "protocol must be one of GENEVE, HTTP, "),
    (GROUP, {"port": "ssh"}, "port must be a whole number, not 'ssh'"),
    (RULE, {"loadBalancingScheme": "OUTSIDE"}, "loadBalancingScheme must be one of EXTERNAL, EXTERNAL_MANAGED, "),
    (RULE, {"ipProtocol": "GRE"}, "ipProtocol must be one of AH, ESP, ICMP, "),
    (VAULT, of_vault(name="gold"), "properties.sku.name must be one of standard, premium, not 'gold'"),
    (VAULT, of_vault(colour="red"), "properties.sku.colour is not a property; there are: family, name"),
    (VAULT, {"properties": OF_VAULT["properties"]}, "resourceGroupName is required"),
    (
        VAULT,
        {**OF_VAULT, "properties": {**OF_VAULT["properties"], "enablePurgeProtection": "true"}},
        "properties.enablePurgeProtection must be true or false, not 'true'",
    ),
    (
        NETWORK,
        {"resourceGroupName": "g", "addressSpace": "10.0.0.0/8"},
        "addressSpace must be an object, not '10.0.0.0/8'",
    ),
    # Written without a look at what the SDKs say.
    (
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        {"bucket": "b", "blockPublicAcl": True},
        "blockPublicAcl is not",
    ),
    (
        VAULT,
        {**OF_VAULT, "properties": {**OF_VAULT["properties"], "networkAcls": {"bypass": "AzureServices, Logging"}}},
        "properties.networkAcls.bypass must be one of AzureServices, None, not",
    ),
    (
        "azure-native:compute:DiskEncryptionSet",
        {"resourceGroupName": "g", "encryptionType": "EncryptionAtRestWithPlatformKey"},
        "encryptionType must be one of EncryptionAtRestWithCustomerKey, ",
    ),
    (
        "gcp:compute/subnetwork:Subnetwork",
        {"network": "n", "ipCidrRange": "10.0.0.0/24", "logConfig": {"aggregationInterval": "INTERVAL_10_MINUTES"}},
        "logConfig.aggregationInterval must be one of INTERVAL_10_MIN, ",
    ),
    ("gcp:storage/bucket:Bucket", {"location": "EU", "storageClass": "COOL"}, "storageClass must be one of ARCHIVE, "),
    (
        "gcp:compute/instanceGroupManager:InstanceGroupManager",
        {
            "baseInstanceName": "a",
            "versions": [{"instanceTemplate": "t"}],
            "updatePolicy": {"type": "OPPORTUNISTIC", "minimalAction": "REPLACE", "instanceRedistributionType": "NONE"},
        },
        "updatePolicy.instanceRedistributionType is not a property; there are: ",
    ),
]


@pytest.mark.parametrize(("token", "inputs", "text"), WRONG)
def test_a_wrong_input_is_found_with_its_path(token: str, inputs: dict[str, Any], text: str) -> None:
    (only,) = messages(token, inputs)
    assert only.startswith(text)


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("aws:ec2/instance:Instance", {**INSTANCE, "instanceType": "of-next-year.large", "ami": Unknown()}),
        ("aws:ec2/instance:Instance", {**INSTANCE, "metadataOptions": {"httpTokens": "required"}, "tags": {"a": "b"}}),
        ("aws:ec2/instance:Instance", {**INSTANCE, "userDataBase64": Secret("aGk=")}),
        (GROUP, {"port": "6443", "protocol": "TCP", "deregistrationDelay": 30.0, "proxyProtocolV2": "true"}),
        ("gcp:storage/bucket:Bucket", {"location": "EU", "retentionPolicy": {"retentionPeriod": 2592000.0}}),
        (VAULT, OF_VAULT),
        (NETWORK, {"resourceGroupName": "g", "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}}),
        ("pulumi-python:dynamic:Resource", {"anything": 1}),
        ("aws:no/thing:Thing", {"anything": 1}),
    ],
)
def test_a_right_input_is_not(token: str, inputs: dict[str, Any]) -> None:
    """Also one of a type that no SDK here describes, and what a wrapped provider of Terraform converts."""
    assert messages(token, inputs) == []


def test_the_value_of_a_secret_is_not_shown() -> None:
    (only,) = messages("aws:ec2/instance:Instance", {**INSTANCE, "sourceDestCheck": Secret("hush")})
    assert only == "sourceDestCheck has a secret value that its type does not allow"
