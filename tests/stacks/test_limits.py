"""What `check` counts against the limits of clouds, compared with what their stacks declare."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network
from typing import Any

import pytest

from cluster.catalogue import of
from cluster.check import limits
from cluster.check.finding import Finding, Subject
from cluster.positions import nowhere
from cluster.sources import source_of
from cluster.spec import Cloud, Cluster
from cluster.storage import has_block, has_file
from components.flows.flow import Role
from components.flows.table import flows
from network.addresses import plan
from stacks.aws import rules as of_aws
from stacks.aws import secrets, volume_rights
from stacks.aws.store import AwsStore
from stacks.azure import rules as of_azure
from stacks.cloud_store import API_SERVERS, WORKERS
from stacks.firewalls import ranges_of_roles

Build = Callable[..., Cluster]

ACCOUNT, VPC = "123456789012", "vpc-0123456789abcdef0"
LONGEST = "kudu-with-the-longest-name-that-a-cluster-may-have-on-any-cloud"
POOL = {"machine": "any", "max": 3}
WIDE: Mapping[str, Any] = {
    "pools": {"cpu": POOL, "more": POOL},
    "control_plane": {
        "operators": [f"192.0.2.{4 * i}/30" for i in range(9)],
        "public": {"name": "api.example.org", "operators": [f"203.0.113.{2 * i}/32" for i in range(11)]},
    },
    "network": {"node_ports": {"outside": [f"198.51.100.{2 * i}/32" for i in range(7)]}},
}
GROUPS = {
    "API servers": Role.API_SERVER,
    "the load balancer": Role.LOAD_BALANCER,
    "the public load balancer": Role.PUBLIC_BALANCER,
    "etcd main": Role.ETCD_MAIN,
    "etcd events": Role.ETCD_EVENTS,
    "workers": Role.WORKER_IN_REGION,
}
WAYS = {"incoming": of_aws.Direction.IN, "outgoing": of_aws.Direction.OUT}
SPECS: list[Mapping[str, Any]] = [
    {},
    WIDE,
    {**WIDE, "etcd": {"events": {"hosts": "main"}}},
    {**WIDE, "network": {**WIDE["network"], "flannel": {"backend": "host-gw"}}},
    {**WIDE, "network": {"node_ports": {"cluster": False}}, "storage": {"file": True}},
    {**WIDE, "pools": {"workers": None, "cpu": POOL}, "storage": {"block": False, "file": True}},
]


@pytest.fixture
def built(build: Build) -> Callable[..., Cluster]:
    """built(cloud, changes, racks): a cluster with that many racks that do not adjoin."""

    def make(cloud: Cloud, changes: Mapping[str, Any], racks: int = 3) -> Cluster:
        zones = {Cloud.AWS: ["a", "b", "c"]}.get(cloud, [1, 2, 3])
        plane = {"cloud": cloud.value, "region": "us-east-1", "zones": zones, **changes.get("control_plane", {})}
        network = {"nodes": "10.177.0.0/16", **changes.get("network", {})}
        cluster = build(
            {"etcd": {"events": {"hosts": "dedicated"}}, **changes, "control_plane": plane, "network": network}
        )
        apart = {f"r{i}": IPv4Network((10 << 24) + (2 * i << 8)).supernet(new_prefix=24) for i in range(racks)}
        sites = {name: site.model_copy(update={"racks": apart}) for name, site in cluster.spec.sites.items()}
        return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"sites": sites})})

    return make


def aws_rules(cluster: Cluster) -> Counter[tuple[Role, of_aws.Direction]]:
    source = source_of(cluster.spec)
    table = flows(cluster, source)
    return Counter(
        (rule.group, rule.direction) for rule in of_aws.rules(table, of_aws.ranges_of(cluster, plan(cluster), source))
    )


@pytest.mark.parametrize("changes", SPECS)
@pytest.mark.parametrize("racks", [1, 40])
def test_check_counts_the_rules_of_security_groups_as_the_stack_declares_them(built, changes, racks):
    cluster = built(Cloud.AWS, changes, racks)
    declared = aws_rules(cluster)
    for group in limits.groups(cluster):
        number = declared.pop((GROUPS[group.whose], WAYS[group.way]), 0)
        # Outgoing rules for downloads depend on the mirrors; the most are counted.
        assert group.rules - number in ((0, 1, 2) if group.way == "outgoing" else (0,)), group
    assert max(declared.values()) <= 40, "a group that does not grow with the spec's lists"


def test_check_refuses_racks_that_make_too_many_rules_and_a_raised_quota_permits_them(built):
    """The case that only an `up` used to meet: 40 racks, two ports, one range of operators."""
    operators = {"control_plane": {"operators": ["192.0.2.0/24"]}}
    (problem,) = problems(built(Cloud.AWS, operators, 40))
    assert (
        "would have 81 incoming rules: 40 ranges of racks × 2 (API, tunnels); 1 range of operators" in problem.message
    )
    assert problem.hint.endswith("control_plane.security_group_rules: 81")
    raised = {"control_plane": {**operators["control_plane"], "security_group_rules": 81}}
    assert problems(built(Cloud.AWS, raised, 40)) == []
    assert problems(built(Cloud.AWS, operators, 29)) == []


def problems(cluster: Cluster) -> list[Finding]:
    subject = Subject(cluster, nowhere(cluster.name))
    return [finding for _, rule in limits.RULES for finding in rule(subject)]


def role_policies(cluster: Cluster) -> dict[str, str]:
    """Return identity -> its policy, with IDs of the lengths that AWS gives."""
    planned, region, name = plan(cluster), str(cluster.spec.control_plane.region), cluster.name
    hosts, store = secrets.hosts_of(planned), AwsStore(name, "")
    key = f"arn:aws:kms:{region}:{ACCOUNT}:key/12345678-1234-1234-1234-123456789012"
    folders = secrets.with_backups(cluster, planned, hosts)
    place = volume_rights.Place(name, region, VPC, key, "aws", ACCOUNT)
    files = f"arn:aws:elasticfilesystem:{region}:{ACCOUNT}:file-system/fs-0123456789abcdef0"
    volumes = [
        *(volume_rights.disks(place, f"{WORKERS}-*") if has_block(cluster.spec) else ()),
        *(volume_rights.files(place, files) if has_file(cluster.spec) else ()),
    ]

    def arn(secret: str) -> str:
        return f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{store.stored_name(secret)}-AbCdEf"

    def of(identity: secrets.Identity) -> str:
        payloads = len(cluster.spec.region_pools) if identity.pools else 1
        readable = {
            reader: [
                arn(f"bundle-{reader}"),
                *(arn(f"payload-{number:016x}") for number in range(payloads)),
                *([arn("join-token")] if identity.pools else ()),
            ]
            for reader in identity.readers
        }
        own = {folder: [host for host in of_it if host.name in readable] for folder, of_it in folders.items()}
        own = {folder: of_it for folder, of_it in own.items() if of_it}
        is_server = identity.name == API_SERVERS
        inputs = {
            "readable": readable,
            "key": key,
            "vpc": VPC,
            "token": arn("join-token") if is_server else None,
            "audit": f"arn:aws:s3:::{name[:40]}-audit-{ACCOUNT}" if is_server else None,
            "backups": f"arn:aws:s3:::{name[:40]}-backups-{ACCOUNT}" if own else None,
            "volumes": volumes if identity.name == secrets.CONTROLLERS else None,
        }
        return secrets.document(name, region, hosts, own, inputs)

    return {identity.name: of(identity) for identity in secrets.identities(cluster, planned)}


def length(policy: str) -> int:
    """Return what IAM counts: characters without white space."""
    return len(re.sub(r"\s", "", policy))


@pytest.mark.parametrize("hosts", ["dedicated", "main"])
def test_policies_of_etcds_hosts_fit_with_the_most_members_and_the_longest_names(built, hosts):
    backup = {"every": "1h", "keep": "10d"}
    etcd = {"main": {"members": 7, "backup": backup}, "events": {"members": 7, "backup": backup, "hosts": hosts}}
    region = max(of(Cloud.AWS).region_names, key=len)
    cluster = built(Cloud.AWS, {"name": LONGEST, "etcd": etcd, "control_plane": {"region": region}})
    policies = {name: text for name, text in role_policies(cluster).items() if name.startswith("etcd")}
    assert set(policies) == ({"etcd", "etcd-events"} if hosts == "dedicated" else {"etcd"})
    assert max(map(length, policies.values())) <= limits.ROLE_POLICY
    readers = [statement["Sid"] for text in policies.values() for statement in json.loads(text)["Statement"]]
    assert sum(sid.startswith("ReadSecrets") for sid in readers) == (14 if hosts == "dedicated" else 7)


@pytest.mark.parametrize("storage", [{}, {"file": True}, {"block": False, "file": True}, {"block": False}])
@pytest.mark.parametrize(("name", "region"), [("a", "us-east-1"), (LONGEST, "ap-southeast-4")])
@pytest.mark.parametrize("pools", [1, 30])
def test_check_counts_the_characters_of_the_workers_policy_as_the_stack_writes_it(built, storage, name, region, pools):
    changes = {"name": name, "storage": storage, "pools": {f"p{i}": POOL for i in range(pools)}}
    cluster = built(Cloud.AWS, {**changes, "control_plane": {"region": region}})
    written = max(length(text) for key, text in role_policies(cluster).items() if key in (WORKERS, secrets.CONTROLLERS))
    assert limits.role_policy(cluster.spec) + pools * limits.payload_of_pool(cluster.spec) == written


def test_check_refuses_more_pools_than_the_workers_policy_holds(built):
    def of_pools(number: int) -> Cluster:
        pools = {f"p{i}": POOL for i in range(number)}
        return built(Cloud.AWS, {"name": LONGEST, "storage": {"file": True}, "pools": pools})

    (problem,) = problems(of_pools(40))
    most = int(re.search(r"use (\d+) pools", problem.hint)[1])
    assert problems(of_pools(most)) == []
    assert len(problems(of_pools(most + 1))) == 1


@pytest.mark.parametrize("changes", SPECS)
def test_check_counts_the_sources_of_azures_rules_as_the_stack_declares_them(built, changes):
    cluster = built(Cloud.AZURE, changes, 20)
    source = source_of(cluster.spec)
    of_roles = {role: tuple(map(str, ranges)) for role, ranges in ranges_of_roles(cluster, plan(cluster)).items()}
    roles = {
        "racks": Role.WORKER_AT_SITE,
        "operators": Role.OPERATOR,
        "public": Role.PUBLIC_OPERATOR,
        "clients": Role.SERVICE_CLIENT,
    }
    declared = Counter()
    for rule in of_azure.rules(cluster, plan(cluster), source, flows(cluster, source)):
        declared.update(key for key, role in roles.items() if rule.sources == of_roles[role] for _ in rule.sources)
    assert {key: declared[key] for key in roles} == limits.addresses_of_sources(cluster)


def test_check_refuses_more_ranges_than_firewalls_of_azure_and_google_take(built):
    def many(cloud: Cloud, number: int) -> Cluster:
        return built(cloud, {"pools": {"cpu": POOL}}, number)

    assert problems(many(Cloud.AZURE, 400)) == []
    (of_azure_,) = problems(many(Cloud.AZURE, 500))
    assert "4,500 of racks" in of_azure_.message
    assert problems(many(Cloud.GCP, 5000)) == []
    (of_google,) = problems(many(Cloud.GCP, 5001))
    assert "5,001 ranges" in of_google.message
