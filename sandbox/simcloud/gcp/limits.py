"""Limits of Google Cloud on the values of properties. Each group names the page of the documentation that has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, ip_network

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.gcp.machine_limits import ADDRESSED, EMAIL, GROUPS, MACHINES, boots, last, takes_scratch
from sandbox.simcloud.limits import (
    Limit,
    between,
    distinct,
    has,
    longest,
    most,
    needed_if,
    one_of,
    only_if,
    shaped,
    where,
)
from sandbox.simcloud.values import Properties, Value, at

_LABEL = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_LABELED = "use 1 to 63 of a-z, 0-9 and hyphens, a letter first, no hyphen last"
_DAY = 86400
_DATE = r"\d{4}-\d{2}-\d{2}"
# Regions have a number; other locations are multi-regions such as EU, and global.
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")


def _exists(value: Value) -> bool:
    """Whether a location is no region, or one that the catalogue has."""
    place = last(value).lower()
    return not _REGION.fullmatch(place) or place in of(Cloud.GCP).region_names


def _known(path: str) -> Limit:
    return where(path, _exists, "name a region of Google Cloud, such as europe-west4")


def _is_network(value: Value) -> bool:
    try:
        ip_network(str(value))
    except ValueError:
        return False
    return True


def _is_balanced(text: Value) -> bool:
    """Whether each quote and parenthesis of a filter is closed."""
    bare = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", str(text))
    while bare != (inner := re.sub(r"\([^()]*\)", "", bare)):
        bare = inner
    return not re.search(r"""["'()]""", bare)


def _is_of_host(value: Value) -> bool:
    """Whether a peer may have this address; a tunnel decides whether it may be private."""
    try:
        address = IPv4Address(str(value))
    except ValueError:
        return False
    return not (address.is_link_local or address.is_loopback or address.is_multicast or address.is_unspecified)


def _is_power(value: Value) -> bool:
    return int(value) > 0 and int(value) & (int(value) - 1) == 0


def _ports(value: Value) -> bool:
    ends = str(value).split("-")
    return len(ends) <= 2 and all(end.isdigit() and int(end) <= 65535 for end in ends) and int(ends[0]) <= int(ends[-1])


def _balanced(condition: object) -> bool:
    """Whether an expression of CEL has its operands, parentheses and quotes."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "''", str(condition)).strip()
    is_whole = text.count("(") == text.count(")") and text.replace("''", "").count("'") == 0 and '"' not in text
    return bool(text) and is_whole and not re.search(r"([<>=!&|+*/-]|\bin)\s*$|^\s*([<>=&|+*/])", text)


def _same_use(key: Properties) -> bool:
    """Whether a key's algorithm is one of its purpose ("CryptoKeyVersionAlgorithm")."""
    algorithm = str(next(at(key, "versionTemplate.algorithm"), ""))
    uses = {
        "ENCRYPT_DECRYPT": ("GOOGLE_SYMMETRIC", "EXTERNAL_SYMMETRIC"),
        "ASYMMETRIC_SIGN": ("RSA_SIGN", "EC_SIGN", "PQ_SIGN"),
        "ASYMMETRIC_DECRYPT": ("RSA_DECRYPT",),
        "MAC": ("HMAC_",),
        "RAW_ENCRYPT_DECRYPT": ("AES_",),
    }
    return not algorithm or algorithm.startswith(uses.get(key.get("purpose") or "ENCRYPT_DECRYPT", ("",)))


def _has_condition(rule: Properties) -> bool:
    return any(value not in (None, "", [], False) for value in (rule.get("condition") or {}).values())


def _of_record(record: Properties) -> bool:
    """Whether a record's data suit its type ("DNS records overview")."""
    data = [str(text) for text in record.get("rrdatas") or ()]
    if record["type"] == "CNAME" and len(data) > 1:
        return False
    return record["type"] not in ("CNAME", "NS", "PTR") or all(text.endswith(".") for text in data)


def _seconds(text: Value) -> float:
    return float(str(text).removesuffix("s"))


_CONDITION = where("condition.expression", _balanced, "write a whole expression of CEL")
_MEMBERS = (
    *(
        "projects/iAMMember:IAMMember",
        "kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
        "kms/keyRingIAMMember:KeyRingIAMMember",
    ),
    *("secretmanager/secretIamMember:SecretIamMember", "storage/bucketIAMMember:BucketIAMMember"),
    *("serviceaccount/iAMMember:IAMMember", "kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding"),
    "secretmanager/secretIamBinding:SecretIamBinding",
)
_RULE = "lifecycleRules[]"
_POLICIES = ("groupPlacementPolicy", "snapshotSchedulePolicy", "instanceSchedulePolicy", "workloadPolicy")
# "Resource: Address".
_PURPOSES = (
    *("GCE_ENDPOINT", "SHARED_LOADBALANCER_VIP", "VPC_PEERING", "IPSEC_INTERCONNECT", "PRIVATE_SERVICE_CONNECT"),
    *("DNS_RESOLVER", "NAT_AUTO", "SERVERLESS"),
)
# "Bucket locations": what is not a region.
_WIDE = ("us", "eu", "asia", "nam4", "eur4", "eur5", "eur7", "eur8", "asia1")
_BASIC = ("roles/owner", "roles/editor", "roles/viewer")


def _of_parts(rule: Properties) -> bool:
    """Whether a rule about unfinished uploads has only conditions that they have ("Object Lifecycle Management")."""
    if next(at(rule, "action.type"), "") != "AbortIncompleteMultipartUpload":
        return True
    given = {name for name, value in (rule.get("condition") or {}).items() if value not in (None, "", [], False)}
    # The last is the provider's: it sends an age of 0.
    return given <= {"age", "matchesPrefixes", "matchesSuffixes", "sendAgeIfZero"}


LIMITS: Mapping[str, tuple[Limit, ...]] = {
    # "Overview of IAM Conditions".
    **{
        f"gcp:{token}": (
            _CONDITION,
            needed_if("condition.title", lambda _: True, "a condition has a title"),
            longest("condition.title", 100),
            only_if("condition", lambda given: given.get("role") not in _BASIC, "basic roles have no conditions"),
        )
        for token in _MEMBERS
    },
    "gcp:compute/instance:Instance": (
        *MACHINES,
        boots("bootDisk.initializeParams", "type"),
        only_if("scratchDisks", takes_scratch, "the machine type has no such number of local disks"),
        # "Instance: hostname": RFC 1123.
        shaped("hostname", r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){2,}", "use three labels or more, with dots"),
    ),
    "gcp:compute/instanceTemplate:InstanceTemplate": (*MACHINES, boots("disks[]", "diskType", has("boot"))),
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": (*MACHINES, boots("disks[]", "diskType", has("boot"))),
    "gcp:compute/instanceGroupManager:InstanceGroupManager": GROUPS,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": GROUPS,
    # "About Hyperdisk Balanced", "About Persistent Disk": sizes; "Resource: Disk".
    "gcp:compute/disk:Disk": (
        only_if("size", lambda disk: not last(disk.get("type", "")).startswith("hyperdisk") or int(disk["size"]) >= 4, "a Hyperdisk has 4 GB at least"),
        only_if("provisionedThroughput", lambda disk: last(disk.get("type", "")) != "hyperdisk-balanced"
                or int(disk["provisionedThroughput"]) <= max(140, int(disk.get("provisionedIops") or 3000) // 4),
                "Hyperdisk Balanced takes at most a fourth of its IOPS, in MiB a second"),
        one_of("physicalBlockSizeBytes", 4096, 16384),
        where("zone", lambda zone: _exists(last(zone).rpartition("-")[0]), "name a zone of Google Cloud, such as europe-west4-a"),
    ),
    # "Placement policies", "Resource: ResourcePolicy".
    "gcp:compute/resourcePolicy:ResourcePolicy": (
        *(only_if(kind, lambda given: sum(bool(given.get(name)) for name in _POLICIES) == 1, "a policy has one kind") for kind in _POLICIES),
        one_of("workloadPolicy.type", "HIGH_AVAILABILITY", "HIGH_THROUGHPUT"),
        only_if("groupPlacementPolicy.availabilityDomainCount", lambda given: not given.get("collocation"), "compact placement has no availability domains"),
        between("groupPlacementPolicy.availabilityDomainCount", 1, 8),
        between("groupPlacementPolicy.vmCount", 1, 1500),
        between("groupPlacementPolicy.maxDistance", 1, 3),
        one_of("groupPlacementPolicy.collocation", "COLLOCATED"),
        between("snapshotSchedulePolicy.schedule.dailySchedule.daysInCycle", 1, 1),
        shaped("snapshotSchedulePolicy.schedule.dailySchedule.startTime", r"([01]\d|2[0-3]):00", "use a full hour, such as 04:00"),
    ),
    "gcp:compute/reservation:Reservation": (between("specificReservation.count", 1, 1000),),
    # "Resource: Subnetwork".
    "gcp:compute/subnetwork:Subnetwork": (
        between("logConfig.flowSampling", 0, 1),
        only_if("role", has("purpose", "REGIONAL_MANAGED_PROXY", "GLOBAL_MANAGED_PROXY", "INTERNAL_HTTPS_LOAD_BALANCER"), "only subnetworks for proxies have a role"),
        shaped("secondaryIpRanges[].rangeName", _LABEL, _LABELED),
        distinct("secondaryIpRanges[].rangeName"),
        only_if("logConfig.metadataFields", has("metadata", "CUSTOM_METADATA"), "only CUSTOM_METADATA has fields"),
    ),
    # "Resource: Address".
    "gcp:compute/address:Address": (
        only_if("purpose", has("addressType", "INTERNAL"), "only internal addresses have a purpose"),
        one_of("purpose", *_PURPOSES),
    ),
    "gcp:compute/globalAddress:GlobalAddress": (
        only_if("prefixLength", has("purpose", "VPC_PEERING"), "only VPC_PEERING reserves a range"),
    ),
    # "Resource: Firewall".
    "gcp:compute/firewall:Firewall": tuple(
        shaped(f"{side}ServiceAccounts[]", EMAIL, ADDRESSED) for side in ("source", "target")
    ),
    # "Resource: NetworkFirewallPolicy".
    "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules": (
        longest("description", 2048),
        shaped("rules[].ruleName", _LABEL, _LABELED),
        shaped("rules[].targetServiceAccounts[]", EMAIL, ADDRESSED),
        where("rules[].match.layer4Configs[].ports[]", _ports, "use a port, or a range such as 80-443"),
    ),
    # "Resource: Router", "Advertised routes", "BFD for Cloud Router", "MD5 authentication".
    "gcp:compute/router:Router": (
        between("bgp.keepaliveInterval", 20, 60),
        one_of("bgp.advertiseMode", "DEFAULT", "CUSTOM"),
        one_of("bgp.advertisedGroups[]", "ALL_SUBNETS"),
        where("bgp.advertisedIpRanges[].range", _is_network, "give a network without bits of a host"),
    ),
    "gcp:compute/routerPeer:RouterPeer": (
        one_of("advertiseMode", "DEFAULT", "CUSTOM"),
        one_of("advertisedGroups[]", "ALL_SUBNETS"),
        where("advertisedIpRanges[].range", _is_network, "give a network without bits of a host"),
        between("bfd.minTransmitInterval", 1000, 30000),
        between("bfd.minReceiveInterval", 1000, 30000),
        between("bfd.multiplier", 5, 16),
        where("md5AuthenticationKey.key", lambda key: len(key) <= 80, "use at most 80 characters"),
    ),
    "gcp:compute/routerNat:RouterNat": (
        only_if("minPortsPerVm", lambda nat: not nat.get("enableDynamicPortAllocation") or _is_power(nat["minPortsPerVm"]),
                "with dynamic allocation, use a power of two"),
        only_if("minPortsPerVm", lambda nat: int(nat["minPortsPerVm"]) >= (32 if nat.get("enableDynamicPortAllocation") else 2),
                "with dynamic allocation, use 32 or more"),
        only_if("maxPortsPerVm", lambda nat: int(nat["maxPortsPerVm"]) > int(nat.get("minPortsPerVm") or 32), "it is above minPortsPerVm"),
        only_if("enableDynamicPortAllocation", lambda nat: not nat.get("enableEndpointIndependentMapping"),
                "it excludes enableEndpointIndependentMapping"),
        *(between(f"{name}Sec", 1, 2147483647) for name in
          ("tcpEstablishedIdleTimeout", "tcpTransitoryIdleTimeout", "tcpTimeWaitTimeout", "udpIdleTimeout", "icmpIdleTimeout")),
    ),
    # "BGP route policies overview".
    "gcp:compute/routerRoutePolicy:RouterRoutePolicy": (
        distinct("terms[].priority"),
        where("terms[].match.expression", _balanced, "write a whole expression of CEL"),
        shaped("terms[].actions[].expression", r"(accept|drop)\(\)|(med|communities|asPath|priority)\..+", "use accept(), drop() or such as med.set(10)"),
    ),
    # "Resource: VpnTunnel", "Resource: ExternalVpnGateway", "Supported IKE ciphers".
    "gcp:compute/vPNTunnel:VPNTunnel": (
        one_of("ikeVersion", 1, 2),
        only_if("localTrafficSelectors", lambda tunnel: not tunnel.get("router"), "tunnels with BGP have the selector 0.0.0.0/0"),
        shaped("cipherSuite.phase1.encryptions[]", r"AES-(CBC|GCM-(8|12|16))-(128|192|256)", "use a cipher such as AES-GCM-16-256"),
        shaped("cipherSuite.phase2.encryptions[]", r"AES-(CBC|GCM-(8|12|16))-(128|192|256)", "use a cipher such as AES-GCM-16-256"),
    ),
    "gcp:compute/externalVpnGateway:ExternalVpnGateway": (where("interfaces[].ipAddress", _is_of_host, "give an IPv4 address of the peer"),),
    # "Resource: ForwardingRule", "Resource: RegionBackendService", "Resource: RegionHealthCheck".
    "gcp:compute/forwardingRule:ForwardingRule": (
        shaped("serviceLabel", _LABEL, _LABELED),
        between("ports[]", 1, 65535),
        distinct("ports[]"),
        only_if("networkTier", lambda rule: rule.get("loadBalancingScheme") != "INTERNAL" or rule["networkTier"] == "PREMIUM", "internal rules are PREMIUM"),
        only_if("target", lambda rule: not rule.get("backendService"), "a rule has a target or a backend service"),
    ),
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": (
        only_if("target", lambda rule: "/" in str(rule["target"]) or rule["target"] in ("all-apis", "vpc-sc"), "use all-apis, vpc-sc or a proxy"),
    ),
    "gcp:compute/regionBackendService:RegionBackendService": (
        between("connectionDrainingTimeoutSec", 0, 3600),
        between("logConfig.sampleRate", 0, 1),
        between("failoverPolicy.failoverRatio", 0, 1),
    ),
    "gcp:compute/regionHealthCheck:RegionHealthCheck": tuple(
        shaped(f"{kind}HealthCheck.requestPath", r"/.*", "begin with /") for kind in ("http", "https", "http2")
    ),
    # "Resource: ManagedZone", "Resource: ResourceRecordSet".
    "gcp:dns/managedZone:ManagedZone": (
        needed_if("privateVisibilityConfig", lambda zone: zone.get("visibility") == "private" and not zone.get("serviceDirectoryConfig"),
                  "a private zone needs its networks"),
        # "Precondition not met: DNSSEC can only be enabled on public zones" (GoogleCloudPlatform/inspec-gcp-cis-benchmark 67).
        only_if("dnssecConfig", lambda zone: zone.get("visibility") != "private" or zone["dnssecConfig"].get("state", "off") == "off",
                "DNSSEC can only be enabled on public zones"),
    ),
    "gcp:dns/recordSet:RecordSet": (
        between("ttl", 0, 2147483647),
        distinct("rrdatas[]"),
        one_of("type", *["A", "AAAA", "ALIAS", "CAA", "CNAME", "DNSKEY", "DS", "HTTPS", "IPSECKEY", "MX", "NAPTR", "NS", "PTR", "SOA", "SPF", "SRV", "SSHFP", "SVCB", "TLSA", "TXT"]),
        only_if("type", _of_record, "a CNAME has one name; names end with a dot"),
    ),
    # "Resource: CryptoKey".
    "gcp:kms/keyRing:KeyRing": (_known("location"),),
    "gcp:kms/cryptoKey:CryptoKey": (
        where("destroyScheduledDuration", lambda text: _DAY <= _seconds(text) <= 120 * _DAY, "use 86400s to 10368000s"),
        only_if("versionTemplate", _same_use, "its algorithm is of another purpose"),
    ),
    # "Resource: Secret".
    "gcp:secretmanager/secret:Secret": (
        where("replication.userManaged.replicas[].location", lambda place: _REGION.fullmatch(str(place)) and _exists(place), "name a region"),
        distinct("replication.userManaged.replicas[].location"),
        only_if("ttl", lambda secret: not secret.get("expireTime"), "give ttl or expireTime"),
        where("ttl", lambda text: _seconds(text) >= 60, "use 60s or more"),
        where("annotations", lambda given: sum(len(key) + len(str(value)) for key, value in given.items()) <= 16384, "use at most 16 KiB"),
    ),
    # "Resource: Role", "Creating and managing custom roles".
    "gcp:projects/iAMCustomRole:IAMCustomRole": (
        one_of("stage", "ALPHA", "BETA", "GA", "DEPRECATED", "DISABLED", "EAP"),
        needed_if("permissions", lambda _: True, "a role has at least one permission"),
        most("permissions", 3000),
    ),
    # "services.generateServiceIdentity" (Service Usage).
    "gcp:projects/serviceIdentity:ServiceIdentity": (shaped("service", r"[a-z0-9-]+\.googleapis\.com", "write <service>.googleapis.com"),),
    # "Route logs to supported destinations": destination paths.
    "gcp:logging/projectSink:ProjectSink": (
        shaped("destination", r"(storage|bigquery|pubsub|logging)\.googleapis\.com/.+", "write a path such as storage.googleapis.com/<bucket>"),
        # "Logging query language".
        where("filter", _is_balanced, "close each quote and parenthesis"),
    ),
    # "Resource: Bucket", "Soft delete", "Object Lifecycle Management".
    "gcp:storage/bucket:Bucket": (
        where("location", lambda place: str(place).lower() in _WIDE or (_REGION.fullmatch(str(place).lower()) and _exists(place)),
              "name a region of Google Cloud, such as europe-west4, or US, EU or ASIA"),
        one_of("publicAccessPrevention", "inherited", "enforced"),
        where(_RULE, _of_parts, "unfinished uploads have only age, matchesPrefixes and matchesSuffixes"),
        where("softDeletePolicy.retentionDurationSeconds", lambda seconds: int(seconds) == 0 or 7 * _DAY <= int(seconds) <= 90 * _DAY,
              "use 0, or 604800 to 7776000"),
        most("lifecycleRules", 100),
        between(f"{_RULE}.condition.age", 0, 2147483647),
        shaped(f"{_RULE}.condition.createdBefore", _DATE, "use a date such as 2026-01-31"),
        needed_if(f"{_RULE}.action.storageClass", has("type", "SetStorageClass"), "say which class"),
        where(_RULE, _has_condition, "a rule has at least one condition"),
    ),
}  # fmt: skip
