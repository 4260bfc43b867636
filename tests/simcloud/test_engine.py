"""Programs of the typed SDKs run by the real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_azure_native as azure
import pulumi_gcp as gcp

from sandbox.simcloud.rules import Offers
from sandbox.simcloud.world import World
from stacks import grants
from stacks.azure import roles
from stacks.azure.rights import BuiltIn


def aws_program(type_: str = "m7i.large", tags: dict[str, str] | None = None) -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.1.0/24", availability_zone="eu-west-1a")
    group = aws.ec2.SecurityGroup("hosts", vpc_id=vpc.id)
    template = aws.ec2.LaunchTemplate("hosts", image_id="ami-0", instance_type=type_, vpc_security_group_ids=[group.id])
    balancer = aws.lb.LoadBalancer("api", load_balancer_type="network", internal=True, subnets=[subnet.id], tags=tags)
    targets = aws.lb.TargetGroup("api", port=6443, protocol="TCP", vpc_id=vpc.id)
    aws.lb.Listener(
        "api",
        load_balancer_arn=balancer.arn,
        port=6443,
        protocol="TCP",
        default_actions=[{"type": "forward", "target_group_arn": targets.arn}],
    )
    aws.autoscaling.Group(
        "hosts",
        min_size=1,
        max_size=3,
        vpc_zone_identifiers=[subnet.id],
        target_group_arns=[targets.arn],
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    )
    pulumi.export("subnet", subnet.arn)
    pulumi.export("balancer", balancer.dns_name)
    pulumi.export("version", template.latest_version)
    pulumi.export("zones", aws.get_availability_zones_output().names)


def gcp_program(range_: str = "10.1.0.0/24", direction: str = "INGRESS") -> None:
    network = gcp.compute.Network("network", auto_create_subnetworks=False)
    subnetwork = gcp.compute.Subnetwork("nodes", network=network.id, ip_cidr_range=range_)
    gcp.compute.Firewall(
        "api",
        name="api",
        direction=direction,
        network=network.self_link,
        allows=[{"protocol": "tcp", "ports": ["6443"]}],
        source_ranges=["10.0.0.0/8"] if direction == "INGRESS" else None,
    )
    template = gcp.compute.InstanceTemplate(
        "hosts",
        machine_type="n2-standard-4",
        disks=[{"source_image": "debian-12", "boot": True}],
        network_interfaces=[{"subnetwork": subnetwork.id}],
    )
    gcp.compute.RegionInstanceGroupManager(
        "hosts",
        base_instance_name="host",
        versions=[{"instance_template": template.self_link_unique}],
        target_size=3,
    )
    pulumi.export("network", network.self_link)
    pulumi.export("gateway", subnetwork.gateway_address)


def azure_program(prefix: str = "10.2.1.0/24") -> None:
    group = azure.resources.ResourceGroup("apes", location="westeurope")
    network = azure.network.VirtualNetwork(
        "network", resource_group_name=group.name, address_space={"address_prefixes": ["10.2.0.0/16"]}
    )
    subnet = azure.network.Subnet(
        "nodes", resource_group_name=group.name, virtual_network_name=network.name, address_prefix=prefix
    )
    interface = azure.network.NetworkInterface(
        "etcd", resource_group_name=group.name, ip_configurations=[{"name": "main", "subnet": {"id": subnet.id}}]
    )
    pulumi.export("interface", interface.id)
    pulumi.export("address", interface.ip_configurations[0].private_ip_address)


def everywhere() -> None:
    aws_program()
    gcp_program()
    azure_program()


def test_programs_of_three_clouds_are_planned_created_refreshed_and_destroyed(
    engine: Callable[..., Any],
) -> None:
    run = engine()
    run.program = everywhere
    assert run.preview() == {"create": 17}
    assert len(run.world) == 0
    assert run.up() == {"create": 17}
    outputs = run.outputs()
    assert len(run.world) == 17
    assert (outputs["address"], outputs["gateway"], outputs["version"]) == ("10.2.1.4", "10.1.0.1", 1)
    assert outputs["zones"] == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
    assert outputs["subnet"].startswith("arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0")
    assert outputs["network"].startswith("https://www.googleapis.com/compute/v1/projects/apes/global/networks/network-")
    assert "/providers/Microsoft.Network/networkInterfaces/etcd" in outputs["interface"]
    assert run.world.unproven == {}
    assert run.preview(refresh=True) == {"refresh": 17, "same": 17}
    run.stack.destroy()
    assert list(run.world) == []


def test_a_change_replaces_what_the_clouds_cannot_change_and_its_dependants(
    engine: Callable[..., Any],
) -> None:
    run = engine()
    run.program = everywhere
    run.up()

    # The new template version reaches the scaling group only when it is created: a preview cannot know it. The listener
    # refers to an output of the load balancer that new tags leave unchanged. The subnetwork is widened in place.
    run.program = lambda: (aws_program("m7i.xlarge", {"team": "apes"}), gcp_program("10.1.0.0/23"), azure_program())
    assert run.preview() == {"same": 13, "update": 4}
    before = {record.key for record in run.world}
    run.up()
    assert run.outputs()["version"] == 2
    assert {record.key for record in run.world} == before

    # A new range needs another subnetwork, and therefore another template, which is immutable. The firewall's name is set by
    # the program, so the old firewall is deleted first.
    run.program = lambda: (aws_program(), gcp_program("10.3.0.0/24", "EGRESS"), azure_program())
    operations = run.up()
    assert (operations["create-replacement"], operations["delete-replaced"]) == (3, 3)
    (subnetwork,) = run.world.of_type("gcp:compute/subnetwork:Subnetwork")
    (firewall,) = run.world.of_type("gcp:compute/firewall:Firewall")
    assert (subnetwork.outputs["ipCidrRange"], firewall.outputs["direction"]) == ("10.3.0.0/24", "EGRESS")


def test_secrets_stay_secret_in_state_and_world_and_are_recognised_after_both_are_reopened(
    engine: Callable[..., Any], tmp_path: Path
) -> None:
    def program() -> None:
        # A type without rules is kept as well.
        aws.ssm.Parameter("token", type="SecureString", value=pulumi.Output.secret("xyzzy-1"))
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"motto": pulumi.Output.secret("xyzzy-2")})
        pulumi.export("tags", vpc.tags)

    file = tmp_path / "world.jsonl"
    run = engine(World(file))
    run.program = program
    run.up()
    assert run.outputs()["tags"] == {"motto": "xyzzy-2"}
    assert run.world.unproven == {
        "aws:ssm/parameter:Parameter": {"urn:pulumi:sim::apes::aws:ssm/parameter:Parameter::token"}
    }
    texts = [path.read_text() for path in tmp_path.rglob("*.json*") if path.is_file()]
    assert any("vpc-0" in text for text in texts)
    assert not any("xyzzy" in text for text in texts)
    again = engine(World(file))
    again.program = program
    assert again.preview(refresh=True) == {"refresh": 2, "same": 2}


def test_each_provider_of_a_program_has_its_own_region(engine: Callable[..., Any]) -> None:
    def program() -> None:
        for region in ("eu-west-1", "us-east-2"):
            provider = aws.Provider(region, region=region)
            vpc = aws.ec2.Vpc(region, cidr_block="10.0.0.0/16", opts=pulumi.ResourceOptions(provider=provider))
            pulumi.export(region, vpc.arn.apply(lambda arn: arn.split(":")[3]))

    run = engine()
    run.program = program
    run.up()
    assert run.outputs() == {"eu-west-1": "eu-west-1", "us-east-2": "us-east-2"}


def test_a_refusal_names_the_resource_and_the_way_out(engine: Callable[..., Any]) -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        aws.ec2.Subnet("outside", vpc_id=vpc.id, cidr_block="10.9.0.0/24")

    run = engine()
    run.program = program
    message = run.refused()
    assert (
        "aws:ec2:Subnet (outside): error: api error InvalidSubnet.Range: The CIDR '10.9.0.0/24' is invalid." in message
    )
    assert "it must be in 10.0.0.0/16 of vpc-0" in message

    run.program = lambda: gcp.compute.Network("network", name="Not_Allowed")
    message = run.refused(run.stack.preview)
    assert '"name" ("Not_Allowed") doesn\'t match regexp' in message


def encrypted_program(scope: str = "key") -> None:
    """Storage accounts with a key of a vault. scope: what the role is assigned at, ``key`` or ``identity``."""
    group = azure.resources.ResourceGroup("apes", location="westeurope")
    account = azure.authorization.get_client_config_output()
    vault = azure.keyvault.Vault(
        "vault",
        resource_group_name=group.name,
        properties={
            "tenant_id": account.tenant_id,
            "sku": {"family": "A", "name": "standard"},
            "enable_rbac_authorization": True,
            "enable_purge_protection": True,
        },
    )
    key = azure.keyvault.Key(
        "key",
        resource_group_name=group.name,
        vault_name=vault.name,
        properties={"kty": "RSA", "key_size": 3072},
        opts=pulumi.ResourceOptions(retain_on_delete=True),
    )
    identity = azure.managedidentity.UserAssignedIdentity("storage", resource_group_name=group.name)
    role = roles.built_in(account.subscription_id, BuiltIn.KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER)
    where = key.id if scope == "key" else identity.id
    granted = roles.assign("key", role, identity.principal_id, where, pulumi.ResourceOptions())
    needs = grants.after("key", granted, "the identity of storage may use the key", roles.SLOW)
    for name in ("one", "two"):
        azure.storage.StorageAccount(
            f"apes{name}",
            resource_group_name=group.name,
            kind="StorageV2",
            sku={"name": "Standard_ZRS"},
            identity={"type": "UserAssigned", "user_assigned_identities": [identity.id]},
            encryption={
                "key_source": "Microsoft.Keyvault",
                "key_vault_properties": {"key_name": key.name, "key_vault_uri": vault.properties.vault_uri},
                "encryption_identity": {"encryption_user_assigned_identity": identity.id},
            },
            opts=needs,
        )


def test_resources_wait_until_their_grant_works_and_are_deleted_without_the_program(engine: Callable[..., Any]) -> None:
    run = engine(offers=Offers(slow_grants=7))
    run.program = encrypted_program
    assert run.preview() == {"create": 7}
    with grants.simulated_time():
        assert run.up() == {"create": 7}
    assert run.preview() == {"same": 7}
    # The state names the hook, and this has no program that knows it: the error is still the cloud's.
    run.faults.fail("delete", "azure-native:storage:StorageAccount")
    error = run.refused(run.stack.destroy)
    assert "error: internal error; try again" in error
    assert "hook" not in error
    run.stack.destroy()
    assert list(run.world) == []


def test_a_grant_that_does_not_reach_the_key_is_named_when_the_time_is_over(engine: Callable[..., Any]) -> None:
    run = engine()
    run.program = lambda: encrypted_program(scope="identity")
    with grants.simulated_time():
        error = run.refused()
    assert "the grant does not work after 15 min: the identity of storage may use the key. Look whether" in error
    assert 'Azure said: Status=409 Code="KeyVaultAuthenticationFailure"' in error


def test_an_account_that_exists_but_could_not_use_its_grant_stays_in_the_state_for_the_next_run(
    engine: Callable[..., Any],
) -> None:
    run = engine()
    run.program = encrypted_program
    run.faults.fail_after_creation("azure-native:storage:StorageAccount", 'Code="KeyVaultAuthenticationFailure"')
    with grants.simulated_time():
        error = run.refused()
    assert "exists, but could not use its grant yet (the identity of storage may use the key)" in error
    assert "retrying create" not in error
    assert run.orphans() == []
    assert run.up() == {"same": 6, "update": 1}
