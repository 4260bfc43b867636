"""Limits of AWS on the values of properties. Each group names the page of the AWS API Reference or guide that has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_network

from sandbox.simcloud.aws import tokens
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

# "CreateSecurityGroup", "IpRange" (Amazon EC2).
_DESCRIPTION = r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}"
_DESCRIBED = "use at most 255 of a-z, A-Z, 0-9, spaces and ._-:/()#,@[]+=&;{}!$*"
# "IpPermission" (Amazon EC2): by name, or by IANA's number.
_PROTOCOLS = ("-1", "all", "tcp", "udp", "icmp", "icmpv6")
_DAYS = (
    "expiration.days",
    "noncurrentVersionExpiration.noncurrentDays",
    "abortIncompleteMultipartUpload.daysAfterInitiation",
)
_TUNNELS = (1, 2)
# "MarketType" (Amazon EC2).
_MARKETS = ("spot", "capacity-block", "interruptible-capacity-reservation", "on-demand")
_FORWARDED = ("TCP", "UDP", "TCP_UDP", "TLS", "QUIC", "TCP_QUIC")
_IAM_PATH = r"/|/[\x21-\x7e]{1,510}/"
# "KeySpec" and "KeyUsage" of "CreateKey" (AWS KMS).
_USES = {
    "ENCRYPT_DECRYPT": ("SYMMETRIC_DEFAULT", "RSA_", "SM2"),
    "SIGN_VERIFY": ("RSA_", "ECC_", "ML_DSA_", "SM2"),
    "GENERATE_VERIFY_MAC": ("HMAC_",),
    "KEY_AGREEMENT": ("ECC_", "SM2"),
    "ENCAPSULATE_DECAPSULATE": ("ML_KEM_",),
}


def _is_network(version: int) -> Callable[[Value], bool]:
    def fits(value: Value) -> bool:
        try:
            return ip_network(str(value)).version == version
        except ValueError:
            return False

    return fits


def _rules(side: str) -> tuple[Limit, ...]:
    """Return the limits of the rules in a security group's own declaration."""
    return (
        shaped(f"{side}[].description", _DESCRIPTION, _DESCRIBED),
        where(
            f"{side}[].protocol",
            lambda value: str(value).lower() in _PROTOCOLS or (str(value).isdigit() and int(value) <= 255),
            f"use one of {', '.join(_PROTOCOLS)}, or a number of IANA",
        ),
        where(f"{side}[].cidrBlocks[]", _is_network(4), "give an IPv4 network without bits of a host"),
        where(f"{side}[].ipv6CidrBlocks[]", _is_network(6), "give an IPv6 network without bits of a host"),
        only_if(f"{side}[].fromPort", _has_type, "a type of ICMP is -1 to 255"),
    )


def _has_type(rule: Properties) -> bool:
    return not str(rule.get("protocol")).startswith("icmp") or -1 <= int(rule["fromPort"]) <= 255


def _tunnel(end: int) -> tuple[Limit, ...]:
    """Return the limits of a tunnel's options ("ModifyVpnTunnelOptionsSpecification")."""
    limits: list[Limit] = [
        where(f"tunnel{end}DpdTimeoutSeconds", lambda seconds: float(seconds) >= 30, "use 30 or more"),
        between(f"tunnel{end}RekeyFuzzPercentage", 0, 100),
        between(f"tunnel{end}RekeyMarginTimeSeconds", 60, 1800),
        between(f"tunnel{end}ReplayWindowSize", 64, 2048),
        between(f"tunnel{end}Phase1LifetimeSeconds", 900, 28800),
        between(f"tunnel{end}Phase2LifetimeSeconds", 900, 3600),
        one_of(f"tunnel{end}DpdTimeoutAction", "clear", "none", "restart"),
        one_of(f"tunnel{end}StartupAction", "add", "start"),
        one_of(f"tunnel{end}IkeVersions[]", "ikev1", "ikev2"),
        one_of(f"tunnel{end}Phase1DhGroupNumbers[]", 2, *range(14, 25)),
        one_of(f"tunnel{end}Phase2DhGroupNumbers[]", 2, 5, *range(14, 25)),
        only_if(
            f"tunnel{end}Phase2LifetimeSeconds",
            lambda given: (
                given[f"tunnel{end}Phase2LifetimeSeconds"] < given.get(f"tunnel{end}Phase1LifetimeSeconds", 28800)
            ),
            "the lifetime of phase 2 is below that of phase 1",
        ),
    ]
    for phase in (1, 2):
        algorithms = ("AES128", "AES256", "AES128-GCM-16", "AES256-GCM-16")
        limits.append(one_of(f"tunnel{end}Phase{phase}EncryptionAlgorithms[]", *algorithms))
        hashes = ("SHA1", "SHA2-256", "SHA2-384", "SHA2-512")
        limits.append(one_of(f"tunnel{end}Phase{phase}IntegrityAlgorithms[]", *hashes))
    return tuple(limits)


def _market(path: str = "instanceMarketOptions.spotOptions") -> tuple[Limit, ...]:
    """Return the limits of spot requests ("LaunchTemplateSpotMarketOptionsRequest")."""
    return (
        one_of("instanceMarketOptions.marketType", *_MARKETS),
        only_if(path, lambda market: market.get("marketType") == "spot", "only the market type spot has spotOptions"),
        shaped(f"{path}.maxPrice", r"\d*\.?\d+", "give a number of US dollars an hour"),
        only_if(
            f"{path}.instanceInterruptionBehavior",
            lambda spot: (
                spot["instanceInterruptionBehavior"] == "terminate" or spot.get("spotInstanceType") == "persistent"
            ),
            "only persistent requests stop or hibernate instances",
        ),
    )


def _health(path: str) -> tuple[Limit, ...]:
    """Return the limits of the percentages between which a group stays ("RefreshPreferences", "InstanceMaintenancePolicy")."""
    least, most = f"{path}.minHealthyPercentage", f"{path}.maxHealthyPercentage"
    return (
        between(least, -1, 100),
        where(most, lambda percent: percent == -1 or 100 <= percent <= 200, "use 100 to 200"),
        only_if(most, lambda given: given.get("minHealthyPercentage") is not None, "give minHealthyPercentage with it"),
        only_if(
            most,
            lambda given: given["maxHealthyPercentage"] - given.get("minHealthyPercentage", 100) <= 100,
            "it is at most 100 above minHealthyPercentage",
        ),
    )


def _by_tags(rule: Properties) -> bool:
    """Whether a rule filters by tags: markers and parts have none ("LifecycleExpiration", "AbortIncompleteMultipartUpload")."""
    return any([*at(rule, "filter.tag"), *at(rule, "filter.and.tags")])


def _sticks(group: Properties) -> bool:
    """Whether a target group's stickiness is one of its protocol ("TargetGroupAttribute")."""
    is_cookie = str(group["stickiness"].get("type")).endswith("cookie")
    return is_cookie == (group.get("protocol", "HTTP") in ("HTTP", "HTTPS"))


# "LaunchTemplateSpecification" (Amazon EC2 Auto Scaling).
_TEMPLATES = ("launchTemplate", "mixedInstancesPolicy.launchTemplate.launchTemplateSpecification")
# "SuspendProcesses" (Amazon EC2 Auto Scaling).
_PROCESSES = (
    *("Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck"),
    *("InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions"),
)
# "InstanceMetadataOptionsRequest", "Placement" (Amazon EC2).
_HOST: tuple[Limit, ...] = (between("metadataOptions.httpPutResponseHopLimit", 1, 64),)
_TERMINATION = (
    r"Default|AllocationStrategy|(Oldest|Newest)Instance|OldestLaunch(Configuration|Template)"
    r"|ClosestToNextInstanceHour|arn:aws[\w-]*:lambda:.+"
)
_ENCRYPTED = "only encrypted volumes have a key: set encrypted"

LIMITS: Mapping[str, tuple[Limit, ...]] = {
    tokens.TEMPLATE: (
        *_HOST,
        *_market(),
        # "CreditSpecificationRequest" (Amazon EC2). The provider ignores it for an instance of another type.
        only_if("creditSpecification", lambda host: not host.get("instanceType") or str(host["instanceType"]).startswith("t"),
                "only burstable types, such as t3.large, have CPU credits"),
        one_of("placement.tenancy", "default", "dedicated", "host"),
        distinct("blockDeviceMappings[].deviceName"),
        only_if("blockDeviceMappings[].ebs.kmsKeyId", lambda ebs: ebs.get("encrypted") in (True, "true"), _ENCRYPTED),
        # "LaunchTemplateTagSpecificationRequest".
        one_of("tagSpecifications[].resourceType", "instance", "volume", "network-interface", "spot-instances-request"),
        # "LaunchTemplateIamInstanceProfileSpecificationRequest".
        only_if("iamInstanceProfile.name", lambda profile: not profile.get("arn"), "give its name or its arn"),
        # "LaunchTemplateCapacityReservationSpecificationRequest".
        shaped("capacityReservationSpecification.capacityReservationTarget.capacityReservationId", r"cr-\w+", "write its ID, cr-..."),
        only_if(
            "capacityReservationSpecification.capacityReservationTarget",
            lambda given: given.get("capacityReservationPreference") not in ("open", "none"),
            "give a preference or a target",
        ),
    ),
    tokens.INSTANCE: (
        *_HOST,
        one_of("tenancy", "default", "dedicated", "host"),
        # "Amazon EBS volume types": HDD volumes cannot be boot volumes.
        where("rootBlockDevice.volumeType", lambda kind: kind not in ("st1", "sc1"), "use an SSD: HDDs cannot boot"),
        only_if("placementPartitionNumber", has("placementGroup"), "only placement groups have partitions"),
    ),
    tokens.VOLUME: (only_if("kmsKeyId", has("encrypted", True), _ENCRYPTED),),
    # "CreateAutoScalingGroup" (Amazon EC2 Auto Scaling).
    tokens.SCALING_GROUP: (
        *(shaped(f"{path}.version", r"\$Latest|\$Default|[1-9]\d*", "use a number, $Latest or $Default") for path in _TEMPLATES),
        *_health("instanceRefresh.preferences"),
        *_health("instanceMaintenancePolicy"),
        one_of("suspendedProcesses[]", *_PROCESSES),
        one_of("instanceRefresh.strategy", "Rolling", "ReplaceRootVolume"),
        shaped("terminationPolicies[]", _TERMINATION, "use Default, AllocationStrategy, OldestInstance or another of its names"),
        only_if(f"{_TEMPLATES[0]}.name", lambda given: not given.get("id"), "give the template's ID or its name"),
        only_if(f"{_TEMPLATES[1]}.launchTemplateName", lambda given: not given.get("launchTemplateId"), "give the template's ID or its name"),
        shaped("waitForCapacityTimeout", r"0|(\d+(\.\d+)?(ms|s|m|h))+", "use a duration such as 10m, or 0"),
        shaped("healthCheckType", r"(EC2|EBS|ELB|VPC_LATTICE)(,(EC2|EBS|ELB|VPC_LATTICE))*", "use EC2, EBS, ELB or VPC_LATTICE"),
        where("maxInstanceLifetime", lambda seconds: seconds == 0 or 86400 <= seconds <= 31536000, "use 0, or 86400 to 31536000"),
    ),
    # "CreatePlacementGroup" (Amazon EC2).
    tokens.PLACEMENT: (only_if("spreadLevel", has("strategy", "spread"), "only the strategy spread has a level"),),
    tokens.SECURITY_GROUP: (shaped("description", _DESCRIPTION, _DESCRIBED), *_rules("ingress"), *_rules("egress")),
    # "CreateVpcEndpoint" (Amazon EC2).
    tokens.ENDPOINT: (
        *(only_if(name, lambda given: given.get("vpcEndpointType", "Gateway") != "Gateway", f"gateway endpoints have no {name}")
          for name in ("subnetIds", "securityGroupIds", "privateDnsEnabled")),
        only_if("routeTableIds", lambda given: given.get("vpcEndpointType", "Gateway") == "Gateway", "only gateway endpoints have it"),
    ),
    # "CreateNatGateway" (Amazon EC2), "Regional NAT gateways".
    tokens.NAT_GATEWAY: (
        only_if("allocationId", lambda given: given.get("connectivityType") != "private", "private gateways have no public address"),
        only_if("availabilityMode", lambda given: given["availabilityMode"] != "regional" or given.get("connectivityType") != "private",
                "regional gateways are public"),
    ),
    # "CreateFlowLogs" (Amazon EC2).
    "aws:ec2/flowLog:FlowLog": (
        one_of("maxAggregationInterval", 60, 600),
        needed_if("iamRoleArn", has("logDestinationType", "cloud-watch-logs"), "logs for CloudWatch need a role"),
    ),
    # "CreateVpnGateway", "CreateCustomerGateway" (Amazon EC2).
    tokens.VPN_GATEWAY: (
        where("amazonSideAsn", lambda asn: 64512 <= int(asn) <= 65534 or 4200000000 <= int(asn) <= 4294967294,
              "use a private ASN: 64512 to 65534, or 4200000000 to 4294967294"),
    ),
    tokens.CUSTOMER_GATEWAY: (between("bgpAsn", 1, 2147483647), between("bgpAsnExtended", 2147483648, 4294967295)),
    "aws:ec2/vpnConnection:VpnConnection": (
        one_of("type", "ipsec.1"),
        # "VpnConnectionOptionsSpecification" (Amazon EC2).
        needed_if("transportTransitGatewayAttachmentId", has("outsideIpAddressType", "PrivateIpv4"), "PrivateIpv4 needs the attachment that carries it"),
        *(limit for end in _TUNNELS for limit in _tunnel(end)),
    ),
    # "CreateTargetGroup", "TargetGroupAttribute" (Elastic Load Balancing).
    tokens.TARGETS: (
        between("port", 1, 65535),
        between("deregistrationDelay", 0, 3600),
        # "Health checks for Network Load Balancer target groups".
        shaped("healthCheck.path", r"/.{0,1023}", "begin with /, and use at most 1024 characters"),
        between("healthCheck.timeout", 2, 120),
        only_if("healthCheck.timeout", lambda check: check["timeout"] <= check.get("interval", 30), "it is at most the interval"),
        where("healthCheck.port", lambda port: port == "traffic-port" or (str(port).isdigit() and 1 <= int(port) <= 65535),
              "use traffic-port, or 1 to 65535"),
        only_if("targetType", lambda given: given["targetType"] == "lambda" or False not in at(given, "healthCheck.enabled"),
                "only targets of the type lambda may go without a health check: leave healthCheck.enabled out"),
        only_if("stickiness", _sticks, "TCP, UDP and TLS have the stickiness source_ip, HTTP and HTTPS have cookies"),
    ),
    # "CreateListener" (Elastic Load Balancing).
    tokens.LISTENER: (
        between("port", 1, 65535),
        needed_if("certificateArn", has("protocol", "TLS", "HTTPS"), "TLS and HTTPS need a certificate"),
        only_if("certificateArn", has("protocol", "TLS", "HTTPS"), "only TLS and HTTPS have a certificate"),
        only_if("alpnPolicy", has("protocol", "TLS"), "only TLS has an ALPN policy"),
        only_if("protocol", lambda given: given["protocol"] not in _FORWARDED or set(at(given, "defaultActions[].type")) <= {"forward"},
                "listeners of network load balancers only forward"),
    ),
    # "AllocateAddress" (Amazon EC2).
    tokens.ADDRESS: (one_of("domain", "vpc"),),
    # "CreateRole" (IAM).
    tokens.ROLE: (
        shaped("permissionsBoundary", r"arn:aws[\w-]*:iam::(\d{12}|aws):policy/.+", "give the ARN of a policy"),
        between("maxSessionDuration", 3600, 43200),
        longest("description", 1000),
        shaped("path", _IAM_PATH, "begin and end it with /"),
    ),
    tokens.PROFILE: (shaped("path", _IAM_PATH, "begin and end it with /"),),
    # "CreateKey", "EnableKeyRotation" (AWS KMS).
    tokens.KEY: (
        longest("description", 8192),
        one_of("keyUsage", *_USES),
        only_if("enableKeyRotation", lambda key: key.get("customerMasterKeySpec", "SYMMETRIC_DEFAULT") == "SYMMETRIC_DEFAULT",
                "only symmetric keys rotate"),
        only_if("customerMasterKeySpec",
                lambda key: str(key["customerMasterKeySpec"]).startswith(_USES.get(key.get("keyUsage", "ENCRYPT_DECRYPT"), ("",))),
                "its keyUsage is of another kind of key"),
    ),
    # "CreateFileSystem" (Amazon EFS).
    tokens.FILE_SYSTEM: (
        needed_if("provisionedThroughputInMibps", has("throughputMode", "provisioned"), "the mode provisioned needs a throughput"),
        only_if("provisionedThroughputInMibps", has("throughputMode", "provisioned"), "only the mode provisioned has a throughput"),
        only_if("performanceMode", lambda given: (given["performanceMode"], given.get("throughputMode")) != ("maxIO", "elastic"),
                "elastic throughput goes with generalPurpose"),
    ),
    # "ServerSideEncryptionByDefault" (Amazon S3).
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
        most("rules", 1),
        only_if("rules[].applyServerSideEncryptionByDefault.kmsMasterKeyId", has("sseAlgorithm", "aws:kms", "aws:kms:dsse"),
                "a KMS key goes with aws:kms"),
    ),
    # "LifecycleExpiration", "NoncurrentVersionExpiration" (Amazon S3).
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": (
        *(between(f"rules[].{path}", 1, 2147483647) for path in _DAYS),
        longest("rules[].id", 255),
        only_if("rules[].expiration", lambda rule: not _by_tags(rule) or True not in at(rule, "expiration.expiredObjectDeleteMarker"),
                "a filter by tags has no delete markers"),
        only_if("rules[].abortIncompleteMultipartUpload", lambda rule: not _by_tags(rule), "a filter by tags has no parts of uploads"),
        only_if("rules[].expiration.expiredObjectDeleteMarker", lambda given: not (given.get("days") or given.get("date")),
                "give days, a date or expiredObjectDeleteMarker"),
    ),
    # "ResourceRecordSet", "HostedZoneConfig" (Amazon Route 53).
    tokens.RECORD: (between("ttl", 0, 2147483647), distinct("records[]")),
    tokens.ZONE: (longest("comment", 256),),
}  # fmt: skip
