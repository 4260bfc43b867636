"""Limits of Google Cloud on the values of properties. Each group names the page of the documentation that has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from cluster.catalogue import of
from cluster.disks import takes
from cluster.spec import Cloud
from sandbox.simcloud.limits import (
    Condition,
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
# "About Local SSD disks": numbers of disks by series and vCPUs; others have any, or as many as their type says.
_SCRATCH = {"n1": (1, 2, 3, 4, 5, 6, 7, 8, 16, 24), "n2": (1, 2, 4, 8, 16, 24), "n2d": (1, 2, 4, 8, 16, 24)}
_WITHOUT_SCRATCH = ("e2", "t2d", "t2a", "n4", "n4a", "n4d")
# "Choose a disk type": what cannot be a boot disk.
_NOT_BOOTABLE = ("hyperdisk-extreme", "hyperdisk-throughput", "hyperdisk-ml", "local-ssd")
_C3 = re.compile(r"(c3|c3d|m3|z3|h3)-")
# "GPU machine types": GPUs are attached to N1 only; other types come with theirs.
_MACHINE = r"(.*/)?([a-z]\w*-[a-z]\w*-\d\w*(-\w+)*|e2-(micro|small|medium)|custom-\d+-\d+|f1-micro|g1-small)"
# "Confidential VM: supported configurations".
_CONFIDENTIAL = ("n2d", "c2d", "c3", "c3d", "c4d", "a3", "g4")
# "Access scopes for OAuth 2.0": by address, or by one of gcloud's aliases.
_SCOPE = r"https://www\.googleapis\.com/auth/[\w./-]+|cloud-platform|[a-z]+(-[a-z]+)+|userinfo-email|bigquery|datastore|pubsub|sql|taskqueue|trace"


def _last(text: Value) -> str:
    return str(text).rpartition("/")[2]


def _series(machine: Properties) -> str:
    return _last(machine.get("machineType", "")).partition("-")[0]


def _exists(value: Value) -> bool:
    """Whether a location is no region, or one that the catalogue has."""
    place = _last(value).lower()
    return not _REGION.fullmatch(place) or place in of(Cloud.GCP).region_names


def _known(path: str) -> Limit:
    return where(path, _exists, "name a region of Google Cloud, such as europe-west4")


def _boots(path: str, kind: str, of_boot: Condition = bool) -> Limit:
    """Limit the boot disk's type to those that the machine takes ("Choose a disk type")."""

    def fits(machine: Properties) -> bool:
        type_ = _last(machine.get("machineType", ""))
        kinds = [_last(disk.get(kind, "")) for disk in at(machine, path) if disk.get(kind) and of_boot(disk)]
        return all(
            name not in _NOT_BOOTABLE
            and takes(Cloud.GCP, type_, name)
            and not (name == "pd-standard" and _C3.match(type_))
            for name in kinds
        )

    return only_if("machineType", fits, f"it does not boot from the type at {path}.{kind}: choose another type of disk")


def _scratch(machine: Properties) -> bool:
    number, series = len(machine["scratchDisks"]), _series(machine)
    return series not in _WITHOUT_SCRATCH and number in _SCRATCH.get(series, (number,))


def _gpus_attach(machine: Properties) -> bool:
    return _series(machine) in ("n1", "") or _last(machine.get("machineType", "")).startswith(
        ("a2", "a3", "a4", "g2", "g4")
    )


def _is_spot(scheduling: Properties) -> bool:
    return scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))


def _fast_enough(machine: Properties) -> bool:
    """Whether a machine has the 30 vCPUs or more that Tier_1 needs ("Configure per VM Tier_1 networking performance")."""
    digits = re.search(r"-(\d+)(-|$)", _last(machine.get("machineType", "")))
    wanted = next(at(machine, "networkPerformanceConfig.totalEgressBandwidthTier"), "DEFAULT")
    return wanted != "TIER_1" or digits is None or int(digits[1]) >= 30


# "VM instance lifecycle", "Spot VMs", "About VM metadata", "Consuming reserved instances".
_MACHINES: tuple[Limit, ...] = (
    shaped("machineType", _MACHINE, "use a type such as n2-standard-4"),
    only_if(
        "scheduling.instanceTerminationAction",
        lambda given: _is_spot(given) or given.get("maxRunDuration"),
        "only spot machines and those with a limited run have a termination action",
    ),
    only_if(
        "scheduling.onHostMaintenance",
        lambda given: not _is_spot(given) or given["onHostMaintenance"] == "TERMINATE",
        "spot machines terminate",
    ),
    only_if(
        "confidentialInstanceConfig",
        lambda machine: _series(machine) in ("", *_CONFIDENTIAL),
        f"only {', '.join(_CONFIDENTIAL)} are confidential",
    ),
    only_if("guestAccelerators", _gpus_attach, "only N1 machines take GPUs; other types come with theirs"),
    only_if("networkPerformanceConfig", _fast_enough, "TIER_1 needs 30 vCPUs or more"),
    one_of("networkInterfaces[].nicType", "GVNIC", "VIRTIO_NET", "IDPF", "MRDMA", "IRDMA"),
    distinct("networkInterfaces[].subnetwork"),
    one_of("advancedMachineFeatures.threadsPerCore", 1, 2),
    where(
        "metadata",
        lambda given: all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(key)) for key in given),
        "keys have 1 to 128 letters, digits, _ and -",
    ),
    shaped(
        "serviceAccount.scopes[]", _SCOPE, "write an address such as https://www.googleapis.com/auth/cloud-platform"
    ),
    shaped(
        "minCpuPlatform",
        r"(Intel|AMD|Ampere|Google) .*(Bridge|Well|well|Lake|Rapids|Ridge|Rome|Milan|Genoa|Turin|Altra|Axion).*",
        "use a platform such as Intel Ice Lake",
    ),
    needed_if("reservationAffinity.specificReservation", has("type", "SPECIFIC_RESERVATION"), "say which reservation"),
    only_if(
        "reservationAffinity.specificReservation",
        has("type", "SPECIFIC_RESERVATION"),
        "only SPECIFIC_RESERVATION names one",
    ),
    one_of("reservationAffinity.specificReservation.key", "compute.googleapis.com/reservation-name"),
)
# "Resource: InstanceGroupManager".
_GROUPS: tuple[Limit, ...] = (
    between("updatePolicy.minReadySec", 0, 3600),
    between("autoHealingPolicies.initialDelaySec", 0, 3600),
    between("targetSize", 0, 4000),
    one_of("distributionPolicyTargetShape", "EVEN", "BALANCED", "ANY", "ANY_SINGLE_ZONE"),
    only_if(
        "updatePolicy.maxSurgePercent",
        lambda given: given.get("maxSurgeFixed") is None,
        "give maxSurgeFixed or maxSurgePercent",
    ),
    only_if(
        "updatePolicy.maxUnavailablePercent",
        lambda given: given.get("maxUnavailableFixed") is None,
        "give maxUnavailableFixed or maxUnavailablePercent",
    ),
)


def _is_network(value: Value) -> bool:
    try:
        ip_network(str(value))
    except ValueError:
        return False
    return True


def _is_public(value: Value) -> bool:
    try:
        address = ip_address(str(value))
    except ValueError:
        return False
    # Addresses of documentation are taken: they stand for public ones in examples.
    return not any(
        address in ip_network(range_) for range_ in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")
    )


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

LIMITS: Mapping[str, tuple[Limit, ...]] = {
    **{f"gcp:{token}": (_CONDITION,) for token in _MEMBERS},
    "gcp:compute/instance:Instance": (
        *_MACHINES,
        _boots("bootDisk.initializeParams", "type"),
        only_if("scratchDisks", _scratch, "the machine type has no such number of local disks"),
        # "Instance: hostname": RFC 1123.
        shaped("hostname", r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){2,}", "use three labels or more, with dots"),
    ),
    "gcp:compute/instanceTemplate:InstanceTemplate": (*_MACHINES, _boots("disks[]", "diskType", has("boot"))),
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": (*_MACHINES, _boots("disks[]", "diskType", has("boot"))),
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _GROUPS,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": _GROUPS,
    # "About Hyperdisk Balanced", "About Persistent Disk": sizes; "Resource: Disk".
    "gcp:compute/disk:Disk": (
        only_if("size", lambda disk: not _last(disk.get("type", "")).startswith("hyperdisk") or int(disk["size"]) >= 4, "a Hyperdisk has 4 GB at least"),
        only_if("provisionedThroughput", lambda disk: _last(disk.get("type", "")) != "hyperdisk-balanced"
                or int(disk["provisionedThroughput"]) <= max(140, int(disk.get("provisionedIops") or 3000) // 4),
                "Hyperdisk Balanced takes at most a fourth of its IOPS, in MiB a second"),
        one_of("physicalBlockSizeBytes", 4096, 16384),
        where("zone", lambda zone: _exists(_last(zone).rpartition("-")[0]), "name a zone of Google Cloud, such as europe-west4-a"),
    ),
    # "Placement policies", "Resource: ResourcePolicy".
    "gcp:compute/resourcePolicy:ResourcePolicy": (
        only_if("groupPlacementPolicy", lambda given: sum(bool(given.get(name)) for name in
                ("groupPlacementPolicy", "snapshotSchedulePolicy", "instanceSchedulePolicy", "workloadPolicy")) == 1, "a policy has one kind"),
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
        shaped("secondaryIpRanges[].rangeName", _LABEL, _LABELED),
        distinct("secondaryIpRanges[].rangeName"),
        only_if("logConfig.metadataFields", has("metadata", "CUSTOM_METADATA"), "only CUSTOM_METADATA has fields"),
    ),
    # "Resource: Address".
    "gcp:compute/address:Address": (only_if("purpose", has("addressType", "INTERNAL"), "only internal addresses have a purpose"),),
    "gcp:compute/globalAddress:GlobalAddress": (
        only_if("prefixLength", has("purpose", "VPC_PEERING"), "only VPC_PEERING reserves a range"),
    ),
    # "Resource: NetworkFirewallPolicy".
    "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules": (
        longest("description", 2048),
        shaped("rules[].ruleName", _LABEL, _LABELED),
        where("rules[].match.layer4Configs[].ports[]", _ports, "use a port, or a range such as 80-443"),
    ),
    # "Resource: Router", "Advertised routes", "BFD for Cloud Router", "MD5 authentication".
    "gcp:compute/router:Router": (
        between("bgp.keepaliveInterval", 20, 60),
        one_of("bgp.advertisedGroups[]", "ALL_SUBNETS"),
        where("bgp.advertisedIpRanges[].range", _is_network, "give a network without bits of a host"),
    ),
    "gcp:compute/routerPeer:RouterPeer": (
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
    "gcp:compute/externalVpnGateway:ExternalVpnGateway": (where("interfaces[].ipAddress", _is_public, "give an address on the internet"),),
    # "Resource: ForwardingRule", "Resource: RegionBackendService", "Resource: RegionHealthCheck".
    "gcp:compute/forwardingRule:ForwardingRule": (
        shaped("serviceLabel", _LABEL, _LABELED),
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
    # "Resource: Bucket", "Soft delete", "Object Lifecycle Management".
    "gcp:storage/bucket:Bucket": (
        _known("location"),
        where("softDeletePolicy.retentionDurationSeconds", lambda seconds: int(seconds) == 0 or 7 * _DAY <= int(seconds) <= 90 * _DAY,
              "use 0, or 604800 to 7776000"),
        most("lifecycleRules", 100),
        between(f"{_RULE}.condition.age", 0, 2147483647),
        shaped(f"{_RULE}.condition.createdBefore", _DATE, "use a date such as 2026-01-31"),
        needed_if(f"{_RULE}.action.storageClass", has("type", "SetStorageClass"), "say which class"),
        where(_RULE, _has_condition, "a rule has at least one condition"),
    ),
}  # fmt: skip
