"""CLD-011: limits of clouds on what the spec becomes in them, which an `up` would meet half-way.

The numbers of rules and characters follow from the table of flows and the policies of roles, which the model does not know:
tests compare them with what the stacks declare. Sources, by page title: "Amazon VPC quotas" (rules); "IAM and AWS STS
quotas" (policies of a role); "Azure subscription and service limits" (addresses in a security group); "Cloud NGFW quotas"
(ranges in a rule); Google's "IAM quotas and limits" (conditions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses
from typing import Literal

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.metrics import relay
from cluster.network import FlannelBackend
from cluster.spec import Cloud, Cluster, ClusterSpec, EtcdHosts
from cluster.storage import controllers_pool, has_block, has_file

ROLE_POLICY = 10_240
"""Characters of a role's inline policies on AWS, without white space."""
AZURE_ADDRESSES, GOOGLE_RANGES = 4_000, 5_000
"""Addresses of one side in all rules of a security group; ranges in one rule."""
POOLS_IN_A_CONDITION = {"volumes": 10, "machines": 12}
"""What a role of Google permits -> the pools that a condition of its grants can name, with at most twelve logical operators
(`stacks.gcp.confinement`)."""
MOST_GRANTS = 20
"""Conditional grants of one role to one member on Google. A change of pools creates others before it deletes the former."""
_POLICIES = {
    (False, False): (576, 2, 4),
    (True, False): (2697, 6, 12),
    (False, True): (2440, 6, 9),
    (True, True): (4561, 10, 17),
}
"""(class `block`, class `file`) -> characters of the policy of the workers that also create volumes, without payloads of pools,
and how often it has the cluster's name and the region."""


@dataclass(frozen=True)
class Listed:
    """Ranges of the spec that firewalls admit. what: in the plural. where: their place in the spec."""

    what: str
    where: Where
    ranges: tuple[IPv4Network, ...]


@dataclass(frozen=True)
class Group:
    """The rules of one direction of a security group. admitted: ranges, and the ports that each may use. others: rules that do
    not depend on lists of the spec."""

    whose: str
    way: Literal["incoming", "outgoing"]
    admitted: tuple[tuple[Listed, tuple[str, ...]], ...]
    others: int

    @property
    def rules(self) -> int:
        """Return how many rules there are. Two that are the same are one."""
        own = {(network, port) for listed, ports in self.admitted for network in listed.ranges for port in ports}
        return len(own) + self.others


def lists(spec: ClusterSpec) -> dict[str, Listed]:
    """Return the lists of a spec from which firewalls take addresses. Ranges of racks and of clients that adjoin are one."""
    plane = spec.control_plane
    sites = sorted({pool.site for pool in spec.pools.values() if pool.site in spec.sites})
    racks = collapse_addresses(rack for site in sites for rack in spec.sites[site].racks.values())
    return {
        "racks": Listed("racks", ("sites", sites[0], "racks") if sites else ("sites",), tuple(racks)),
        "operators": Listed("operators", ("control_plane", "operators"), plane.operators),
        "public": Listed(
            "operators on the internet",
            ("control_plane", "public", "operators"),
            plane.public.operators if plane.public else (),
        ),
        "clients": Listed(
            "clients of Services",
            ("network", "node_ports", "outside"),
            tuple(collapse_addresses(spec.network.node_ports.outside)),
        ),
    }


def groups(cluster: Cluster) -> tuple[Group, ...]:
    """Return the security groups of a cluster on AWS whose rules become more with the spec's lists."""
    spec = cluster.spec
    named = lists(spec)
    racks, operators, clients = named["racks"], named["operators"], named["clients"]
    shared = spec.etcd.events.hosts is not EtcdHosts.DEDICATED
    of_etcd, of_node_ports = ("client", "agent"), ("tcp of Services", "udp of Services")
    between = _between_workers(spec)
    has_workers, zones = bool(spec.cloud_workers), len(spec.control_plane.zones)
    scraper = _scraper(cluster)
    scraped: tuple[tuple[Listed, tuple[str, ...]], ...] = ((racks, ("metrics",)),) if scraper == "site" else ()
    in_region = int(scraper == "region")
    all_groups = [
        Group("API servers", "incoming", scraped, 2 + bool(spec.control_plane.public) + in_region),
        Group("the load balancer", "incoming", ((racks, ("API", "tunnels")), (operators, ("API",))), 2 * has_workers),
        Group("the public load balancer", "incoming", ((named["public"], ("API",)),), 0),
        Group(
            "etcd main",
            "incoming",
            ((operators, (*of_etcd, *(["client of events"] if shared else []))), *scraped),
            (6 if shared else 3) + in_region,
        ),
    ]
    if not shared:
        all_groups.append(Group("etcd events", "incoming", ((operators, of_etcd), *scraped), 3 + in_region))
    if has_workers:
        # Out: API and tunnels, and the store of secrets, in each zone; shared files; the cloud's API, mirror and registry, which
        # may be one rule. Relays of metrics: a range of API servers in each zone, and each host of members.
        hosts = zones + spec.etcd.main.members + (0 if shared else spec.etcd.events.members)
        out = len(between) + 3 * zones + zones * has_file(spec) + 3 + in_region * hosts
        all_groups += [
            Group("workers", "incoming", ((racks, between), (clients, of_node_ports)), len(between)),
            Group("workers", "outgoing", ((racks, between),), out),
        ]
    return tuple(all_groups)


def _scraper(cluster: Cluster) -> Literal["region", "site", ""]:
    """Return where the hosts are that read metrics of the control plane, "" if none do."""
    pool = relay.pool(cluster)
    if pool is None:
        return ""
    return "site" if cluster.spec.pools[pool].site else "region"


def _between_workers(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the ports that workers open to each other."""
    vxlan = ["VXLAN"] if spec.network.flannel.backend is FlannelBackend.VXLAN else []
    node_ports = ["tcp of Services", "udp of Services"] if spec.network.node_ports.cluster else []
    return ("kubelet", *vxlan, *node_ports)


def security_groups(subject: Subject) -> Iterator[Finding]:
    """No security group of AWS has more rules than the account permits. Every range and every port is a rule of its own."""
    spec = subject.spec
    quota = spec.control_plane.security_group_rules
    if spec.control_plane.cloud is not Cloud.AWS:
        return
    all_groups = groups(subject.cluster)
    needed = max(group.rules for group in all_groups)
    yield from (_too_many_rules(group, quota, needed) for group in all_groups if group.rules > quota)


def _too_many_rules(group: Group, quota: int, needed: int) -> Finding:
    """needed: rules of the largest group."""
    parts = [
        f"{len(listed.ranges)} range{'s' * (len(listed.ranges) > 1)} of {listed.what} × {len(ports)} ({', '.join(ports)})"
        for listed, ports in group.admitted
        if listed.ranges
    ]
    most, _ = max(group.admitted, key=lambda pair: len(pair[0].ranges) * len(pair[1]))
    more = f", and {group.others} others" if group.others else ""
    adjoining = (
        "give racks adjoining ranges, which become one rule" if most.what == "racks" else "name fewer, wider ranges"
    )
    return Finding(
        most.where,
        f"the security group of {group.whose} would have {group.rules} {group.way} rules: {'; '.join(parts)}{more}. AWS permits "
        f"{quota}",
        f"{adjoining}; or have AWS raise the quota of rules per security group, and write "
        f"control_plane.security_group_rules: {needed}",
        also=(("control_plane", "security_group_rules"),),
    )


def policies_of_roles(subject: Subject) -> Iterator[Finding]:
    """The policy of AWS by which workers read the payloads of all pools is not too long."""
    spec, pools = subject.spec, len(subject.spec.region_pools)
    if spec.control_plane.cloud is not Cloud.AWS or not pools:
        return
    fixed, of_pool = role_policy(spec), payload_of_pool(spec)
    length = fixed + pools * of_pool
    if length > ROLE_POLICY:
        yield Finding(
            ("pools",),
            f"{pools} pools in the region make the policy of their machines' role {length:,} characters: {fixed:,}, and "
            f"{of_pool} for each pool's payload. IAM permits a role {ROLE_POLICY:,}",
            f"use {(ROLE_POLICY - fixed) // of_pool} pools in the region or fewer, or a shorter name",
            also=(("name",),),
        )


def role_policy(spec: ClusterSpec) -> int:
    """Return the characters of the longest policy of workers on AWS, without their payloads."""
    fixed, names, regions = _POLICIES[has_block(spec), has_file(spec)]
    return fixed + names * len(spec.name) + regions * len(str(spec.control_plane.region))


def payload_of_pool(spec: ClusterSpec) -> int:
    """Return the characters of the ARN of one payload, quoted, with its comma."""
    arn = (
        f"arn:aws:secretsmanager:{spec.control_plane.region}:123456789012:secret:menagerie/{spec.name}/payload_-AbCdEf"
    )
    return len(f'"{arn}",') + 16


def addresses_in_rules(subject: Subject) -> Iterator[Finding]:
    """Firewalls of Azure and Google Cloud take all ranges."""
    spec = subject.spec
    if spec.control_plane.cloud is Cloud.AZURE:
        sources = addresses_of_sources(subject.cluster)
        if sum(sources.values()) > AZURE_ADDRESSES:
            listed = lists(spec)[max(sources, key=lambda key: sources[key])]
            parts = ", ".join(f"{number:,} of {lists(spec)[key].what}" for key, number in sources.items() if number)
            yield Finding(
                listed.where,
                f"the rules of the network security group would name {parts}: every rule names all ranges of its source. "
                f"Azure permits {AZURE_ADDRESSES:,} addresses and ranges",
                "name fewer, wider ranges; racks with adjoining ranges become one",
            )
    if spec.control_plane.cloud is Cloud.GCP:
        for listed in lists(spec).values():
            if len(listed.ranges) > GOOGLE_RANGES:
                yield Finding(
                    listed.where,
                    f"{show(listed.where)} has {len(listed.ranges):,} ranges that do not adjoin; a rule of Google's firewall "
                    f"takes {GOOGLE_RANGES:,}",
                    "name fewer, wider ranges",
                )


def addresses_of_sources(cluster: Cluster) -> dict[str, int]:
    """Return key of a list -> how many of its ranges the rules of Azure's group name as sources, in all rules together."""
    spec = cluster.spec
    has_workers, shared = bool(spec.cloud_workers), spec.etcd.events.hosts is not EtcdHosts.DEDICATED
    scraped = (2 if shared else 3) * (_scraper(cluster) == "site")
    rules = {
        "racks": 2 + scraped + len(_between_workers(spec)) * has_workers,
        "operators": 4 if shared else 5,
        "public": 1,
        "clients": 2 * has_workers,
    }
    return {key: rules[key] * len(listed.ranges) for key, listed in lists(spec).items()}


def grants_of_pools(subject: Subject) -> Iterator[Finding]:
    """The conditions of the cluster's own roles on Google Cloud can name all pools."""
    spec = subject.spec
    if spec.control_plane.cloud is not Cloud.GCP:
        return
    what = "volumes" if controllers_pool(spec) else "machines"
    pools, named = len(spec.region_pools), POOLS_IN_A_CONDITION[what]
    most = named * MOST_GRANTS // 2
    if pools > most:
        yield Finding(
            ("pools",),
            f"{pools} pools in the region need {-(-pools // named)} conditional grants of the role for {what}: twelve logical "
            f"operators, Google's limit, name {named} pools; there may be {MOST_GRANTS} grants, and a change of pools makes all "
            "of them a second time before it deletes the former",
            f"use {most} pools in the region or fewer",
        )


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-011", security_groups),
    ("CLD-011", policies_of_roles),
    ("CLD-011", addresses_in_rules),
    ("CLD-011", grants_of_pools),
)
