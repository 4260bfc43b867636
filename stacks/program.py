"""The Pulumi program of one cluster; it reads like a table of contents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from cluster.outputs import ArtefactOutput, BucketOutput, ClusterOutputs, EtcdOutput, HostOutput, SshOutput
from cluster.spec import Cloud, Cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.members import members
from network import addresses
from network.addresses import ROLES, AddressPlan, HostAddress
from stacks.facts import Facts
from stacks.lean import without_former_types
from stacks.payloads import digests, of_etcds
from stacks.pki import Pki
from stacks.provider import Provider

CLOUDS = frozenset(Cloud)
"""Clouds that have a provider."""


def declare(cluster: Cluster) -> None:
    """Declare every resource of `cluster` and export ``outputs`` (see `ClusterOutputs`)."""
    without_former_types()
    plan = addresses.plan(cluster)
    pki = Pki(cluster, plan)
    provider = provider_of(cluster, plan)
    provider.network()
    provider.storage()
    provider.secrets(pki)
    provider.etcd()
    provider.control_plane()
    provider.workers()
    provider.sites()
    _export(cluster, plan, pki, provider)


def provider_of(cluster: Cluster, plan: AddressPlan) -> Provider:
    """Return the provider of the cluster's cloud; does not import the others."""
    cloud = cluster.spec.control_plane.cloud
    if cloud is Cloud.LAB:
        from stacks.lab.provider import LabProvider  # noqa: PLC0415 - memory: the sandbox, only for labs

        return LabProvider(cluster, plan)
    if cloud is Cloud.AWS:
        from stacks.aws.provider import AwsProvider  # noqa: PLC0415 - extra: aws

        return AwsProvider(cluster, plan)
    if cloud is Cloud.AZURE:
        from stacks.azure.provider import AzureProvider  # noqa: PLC0415 - extra: azure

        return AzureProvider(cluster, plan)
    if cloud is Cloud.GCP:
        from stacks.gcp.provider import GcpProvider  # noqa: PLC0415 - extra: gcp

        return GcpProvider(cluster, plan)
    raise NotImplementedError(f"control_plane.cloud {cloud.value} has no stack yet; use lab")


def _export(cluster: Cluster, plan: AddressPlan, pki: Pki, provider: Provider) -> None:
    public = {
        "kubernetes": pki.kubernetes.signing_first,
        "kubelet-serving": pki.kubelet_serving.signing_first,
        **{f"etcd-{role}": authorities.trusted for role, authorities in pki.etcd.items()},
    }

    def gather(values: Mapping[str, Any]) -> str:
        outputs = _outputs(cluster, plan, provider, values["certificates"], values["facts"], values["buckets"])
        return outputs.model_dump_json()

    certificates = pulumi.Output.all(**public)
    gathered = pulumi.Output.all(certificates=certificates, facts=provider.facts(), buckets=provider.buckets())
    pulumi.export("outputs", pulumi.Output.unsecret(gathered.apply(gather)))
    pulumi.export("ssh_private_key", pulumi.Output.secret(provider.ssh_private_key()))
    pulumi.export("key_rings", json.dumps({name: str(ring) for name, ring in pki.rings.items()}))
    pulumi.export("key_digests", digests(cluster, plan, pki))
    pulumi.export("etcd_payloads", of_etcds(provider.payloads()))
    pulumi.export("authorities", pki.authorities())
    pulumi.export("operator_certificate", pki.admin.certificate)
    pulumi.export("operator_key", pulumi.Output.secret(pki.admin.private_key))
    pulumi.export("operator_etcd_certificate", pki.admin_etcd.certificate)
    pulumi.export("operator_etcd_key", pulumi.Output.secret(pki.admin_etcd.private_key))
    passwords = {role: secret.value for role, secret in pki.backup_passwords.items()}
    pulumi.export("backup_passwords", pulumi.Output.secret(pulumi.Output.json_dumps(passwords)))
    pulumi.export("bucket_key", pulumi.Output.secret(provider.bucket_key()))


def _outputs(
    cluster: Cluster,
    plan: AddressPlan,
    provider: Provider,
    certificates: Mapping[str, str],
    facts: Facts,
    buckets: Mapping[str, BucketOutput],
) -> ClusterOutputs:
    source = provider.artefacts()
    return ClusterOutputs(
        cluster=cluster.name,
        endpoint=f"{plan.endpoint}:{API_PORT}",
        balancers=tuple(str(address) for address in plan.balancers),
        public_name=public.name if (public := cluster.spec.control_plane.public) else None,
        public_target=facts.public_target,
        konnectivity=f"{plan.endpoint}:{KONNECTIVITY_PORT}",
        ca_pem=certificates["kubernetes"],
        serving_ca_pem=certificates["kubelet-serving"],
        api_servers=_hosts(plan.api_servers),
        etcds={
            role: EtcdOutput(
                members=tuple(
                    HostOutput(name=member.host, address=str(member.address), zone=member.zone, member=member.name)
                    for member in members(cluster, role, plan)
                ),
                client_port=members(cluster, role, plan)[0].client_port,
                ca_pem=certificates[f"etcd-{role}"],
            )
            for role in ROLES
        },
        artefacts=ArtefactOutput(mirror=source.mirror, sha256=dict(source.sha256), registry=source.registry),
        ssh=SshOutput(known_hosts=dict(facts.host_keys)),
        buckets=dict(buckets),
        vpn_gateways=facts.addresses(),
        vpn_names=facts.certificates(),
        load_balancer_status=facts.load_balancer_status,
        spec_sha256=cluster.digest,
    )


def _hosts(addresses_: tuple[HostAddress, ...]) -> tuple[HostOutput, ...]:
    return tuple(HostOutput(name=h.name, address=str(h.address), zone=h.zone) for h in addresses_)
