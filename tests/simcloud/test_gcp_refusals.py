"""What Google Cloud refuses of a resource: valid resources with one property changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import REGION, Project, policy_rules

Change = dict[str, Any]
Row = tuple[str, str, Change | Callable[[Project], Change], str]

KIB = 1024


def _interface(**changes: object) -> Callable[[Project], Change]:
    return lambda project: {"networkInterfaces": [{"subnetwork": project["subnetwork"].id, **changes}]}


def _backend(**changes: object) -> Callable[[Project], Change]:
    return lambda project: {"backends": [{"group": project.of("group", "instanceGroup"), **changes}]}


def _update(**policy: object) -> Change:
    return {"updatePolicy": {"maxSurgeFixed": 3, "maxUnavailableFixed": 0, **policy}}


def _check(**checks: object) -> Change:
    return {"httpsHealthCheck": None, **checks}


NETWORK: list[Row] = [
    ("a range of link-local addresses", "subnetwork", {"ipCidrRange": "169.254.0.0/24"}, "prohibited range 169.254"),
    ("a range reserved for Google's APIs", "subnetwork", {"ipCidrRange": "199.36.153.0/24"}, "prohibited range 199.36.153.4/30"),
    ("an MTU that is too large", "network", {"mtu": 9000}, "mtu': '9000'. Must be greater .* 1300"),
    ("a label with capitals", "address", {"labels": {"Team": "apes"}}, "Label key 'Team' violates format constraints"),
    ("a value of a label with a dot", "disk", {"labels": {"a": "v1.2"}}, "Label value 'v1.2' violates format"),
    ("too many labels", "disk", {"labels": {f"a{i}": "" for i in range(65)}}, "Too many labels"),
    ("an address outside its subnetwork", "address", {"address": "10.0.1.5"}, "internal IP is outside the subnetwork"),
    ("a subnetwork's gateway", "address", {"address": "10.0.0.1"}, "reserved.*use 10.0.0.2 to 10.0.0.253"),
    ("a subnetwork's second last address", "address", {"address": "10.0.0.254"}, "reserved"),
    ("an internal address without a subnetwork", "address", {"subnetwork": None}, "Internal addresses need a subnetwork"),
    ("a public address in a subnetwork", "address", {"addressType": None}, "External addresses have none"),
    ("a global internal address without a purpose", "global address", {"purpose": None}, "Invalid purpose"),
    ("a global internal address without a network", "global address", {"network": None}, "need a network"),
    ("an endpoint's address in a subnetwork", "global address",
     lambda p: {"address": "10.0.0.9", "network": p["subnetwork"].inputs["network"]}, "It is in subnetwork '.*/nodes'"),
    ("a route to two hops", "route", {"nextHopIp": "10.0.0.9"}, "only one of `nextHopGateway,.*` can be specified"),
    ("a route without a hop", "route", {"nextHopGateway": None}, "one of `nextHopGateway,.*` must be specified"),
    ("a route to addresses with host bits", "route", {"destRange": "10.0.0.1/24"}, "Must be a CIDR address range"),
    ("a route with too high a priority", "route", {"priority": 65536}, "'65536'. Must be .* less than or equal to 65535"),
]  # fmt: skip

FIREWALL: list[Row] = [
    ("tags together with accounts", "firewall", {"targetTags": ["api"]}, '"targetServiceAccounts": conflicts with targetTags'),
    ("tags as targets with accounts as sources", "firewall",
     {"sourceServiceAccounts": ["a@b"], "targetServiceAccounts": None, "targetTags": ["api"]},
     '"sourceServiceAccounts": conflicts with targetTags'),
    ("ingress without a source", "firewall", {"sourceRanges": None}, "one of source_tags, source_ranges, or source_service"),
    ("egress of an account", "firewall", {"direction": "EGRESS", "sourceServiceAccounts": ["a@b.iam.gserviceaccount.com"]},
     "Only INGRESS firewalls may have sourceServiceAccounts"),
    ("a rule that allows and denies", "firewall", {"denies": [{"protocol": "all"}]}, "only one of `allows,denies`"),
    ("a rule that does neither", "firewall", {"allows": None}, "one of `allows,denies` must be specified"),
    ("more sources than one rule allows", "firewall",
     {"sourceRanges": None, "sourceServiceAccounts": [f"a{n}@other.iam.gserviceaccount.com" for n in range(11)]},
     "At most 10 are allowed in one rule"),
    ("a missing route policy", "peer", {"importPolicies": ["x"]}, "'apes/x' was not found"),
    ("a route policy with a negative priority", "route policy", {"terms": [{"priority": -1}]}, "Must be greater"),
    ("too high a priority", "firewall", {"priority": 70000}, "priority': '70000'"),
    ("a range with host bits", "firewall", {"sourceRanges": ["10.0.0.1/24"]}, r"sourceRanges\[0\]': '10.0.0.1/24'"),
    ("an unknown protocol", "firewall", {"allows": [{"protocol": "quic"}]}, "Unknown protocol"),
    ("ports of ICMP", "firewall", {"allows": [{"protocol": "icmp", "ports": ["1"]}]}, "may not be specified with .*icmp"),
    ("an invalid port", "firewall", {"allows": [{"protocol": "tcp", "ports": ["70000"]}]}, "Invalid port range"),
    ("a tag with capitals", "firewall", {"targetServiceAccounts": None, "targetTags": ["Api"]}, "Must be a match of"),
]  # fmt: skip

POLICY: list[Row] = [
    ("two rules with one priority", "firewall policy", policy_rules({}, {}), r"rules\[1\].priority': '1000'. Same as"),
    ("a priority that Google reserves", "firewall policy", policy_rules({"priority": 2**31 - 1}), "Must be between 0 and"),
    ("a rule with too many ranges", "firewall policy",
     policy_rules({"match": {"srcIpRanges": [f"10.{i // 256}.{i % 256}.0/24" for i in range(5001)], "layer4Configs": [{"ipProtocol": "all"}]}}),
     "'5001'. At most 5000 are allowed in one rule"),
    ("an invalid action", "firewall policy", policy_rules({"action": "drop"}), "expected one of allow, deny"),
    ("an invalid direction", "firewall policy", policy_rules({"direction": "IN"}), "one of INGRESS, EGRESS"),
    ("ingress without ranges", "firewall policy", policy_rules({"match": {"layer4Configs": [{"ipProtocol": "tcp"}]}}),
     "srcIpRanges': ''. INGRESS rules need it"),
    ("egress without ranges", "firewall policy", policy_rules({"direction": "EGRESS"}), "EGRESS rules need it"),
    ("a policy's range with host bits", "firewall policy",
     policy_rules({"match": {"srcIpRanges": ["10.0.0.1/24"], "layer4Configs": [{"ipProtocol": "tcp"}]}}),
     "'10.0.0.1/24'. Must be a valid CIDR"),
    ("a rule without a protocol", "firewall policy", policy_rules({"match": {"srcIpRanges": ["10.0.0.0/24"]}}),
     "at least 1 is required"),
    ("a policy's ports of ICMP", "firewall policy",
     policy_rules({"match": {"srcIpRanges": ["10.0.0.0/24"],
                             "layer4Configs": [{"ipProtocol": "icmp", "ports": ["1"]}]}}),
     "may not be specified with .*icmp"),
    ("a policy for too many accounts", "firewall policy",
     policy_rules({"targetServiceAccounts": [f"a{n}@other.iam.gserviceaccount.com" for n in range(11)]}),
     "At most 10 are allowed in one rule"),
    ("a policy for a missing account", "firewall policy",
     policy_rules({"targetServiceAccounts": ["none@apes.iam.gserviceaccount.com"]}), "none@.* does not exist"),
    ("a policy for a missing network", "association of a policy", {"attachmentTarget": "none"}, "'none' was not found"),
    ("a missing policy for a network", "association of a policy", {"firewallPolicy": "none"}, "'none' was not found"),
    ("a binding with an invalid member", "binding of a key", {"members": ["me@example.com"]}, "invalid value for members"),
    ("a binding with a missing account", "binding of a secret",
     {"members": ["serviceAccount:none@apes.iam.gserviceaccount.com"]}, "none@.* does not exist"),
]  # fmt: skip

ROUTING: list[Row] = [
    ("a public ASN", "router", {"bgp": {"asn": 15169}}, "RFC6996-compliant Local ASN.*got 15169"),
    ("ranges to advertise by default", "router",
     {"bgp": {"asn": 64512, "advertisedIpRanges": [{"range": "10.0.0.0/8"}]}}, "cannot be specified when .* DEFAULT"),
    ("groups to advertise by default", "peer", {"advertisedGroups": ["ALL_SUBNETS"]}, "cannot be specified when .* DEF"),
    ("manual NAT without addresses", "nat", {"natIpAllocateOption": "MANUAL_ONLY"}, "MANUAL_ONLY needs addresses"),
    ("automatic NAT with addresses", "nat", lambda p: {"natIps": [p.link("public address")]}, "AUTO_ONLY allocates"),
    ("NAT of an empty list", "nat", {"sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}, "needs subnetworks"),
    ("NAT of all, and of one", "nat", lambda p: {"subnetworks": [{"name": p["subnetwork"].id}]}, "takes none"),
    ("a second NAT of a network", "nat", lambda p: {"name": p["nat"].outputs["name"] + "2"}, "every subnetwork of the"),
    ("too few ports per machine", "nat", {"minPortsPerVm": 1}, "minPortsPerVm': '1'"),
    ("a range outside link-local", "interface", {"ipRange": "10.0.0.1/30"}, "Must be an address of 169.254.0.0/16"),
    ("a range that is not a /30", "interface", {"ipRange": "169.254.0.1/29"}, "with prefix /30"),
    ("a range's first address", "interface", {"ipRange": "169.254.0.0/30"}, "not a host's"),
    ("the metadata server's range", "interface", {"ipRange": "169.254.169.253/30"}, "not a host's"),
    ("a range of another tunnel", "interface",
     lambda p: {"name": "site-1", "ipRange": p["interface"].inputs["ipRange"]}, "It overlaps 169.254.0.1/30 of"),
    ("a peer outside the tunnel", "peer", {"peerIpAddress": "169.254.0.6"}, "not in the interface's range 169.254.0.0/30"),
    ("a peer with the router's address", "peer", {"peerIpAddress": "169.254.0.1"}, "It is the router's own"),
    ("a peer with the ASN 0", "peer", {"peerAsn": 0}, "peerAsn': '0'"),
    ("a peer on a missing interface", "peer", {"interface": "none"}, "'apes/none' was not found"),
    ("one interface of two", "peer gateway", {"interfaces": [{"id": 0, "ipAddress": "198.51.100.1"}]}, "has 2 interfaces"),
    ("two interfaces with one address", "peer gateway",
     {"interfaces": [{"id": i, "ipAddress": "198.51.100.1"} for i in range(2)]}, "Two interfaces have one address"),
    ("a tunnel without a key", "tunnel", {"sharedSecret": None}, "one of `shared_secret,shared_secret_wo` must be"),
    ("a tunnel without BGP", "tunnel", {"router": None}, "HA VPN routes by BGP only"),
    ("a tunnel without a peer", "tunnel", {"peerExternalGateway": None}, "one of `peerExternalGateway,peerGcpGateway` must"),
    ("a tunnel without an end", "tunnel", {"vpnGatewayInterface": None}, "says at which end"),
    ("a tunnel from a third end", "tunnel", {"vpnGatewayInterface": 2}, "There is no such interface"),
    ("a tunnel to a missing interface", "tunnel", {"peerExternalGatewayInterface": 3}, r"has interfaces \[0, 1\]"),
    ("a tunnel between two networks", "tunnel",
     lambda p: {"router": p.make("router", name="b", network=p.make("network", name="b").id).id}, "It is not in the net"),
]  # fmt: skip

BALANCING: list[Row] = [
    ("an external rule with an internal backend", "forwarding rule",
     {"loadBalancingScheme": "EXTERNAL", "subnetwork": None, "ipAddress": None}, "The backend service's scheme is INTERNAL"),
    ("a check with two protocols", "health check", {"tcpHealthCheck": {"port": 1}}, "only one of `tcpHealthCheck"),
    ("a check without a protocol", "health check", _check(), "one of `tcpHealthCheck,.*` must be specified"),
    ("a check longer than its interval", "health check", {"timeoutSec": 10}, "TimeoutSec should be less than"),
    ("a check with an invalid port", "health check", _check(tcpHealthCheck={"port": 0}), "tcpHealthCheck.port': '0'"),
    ("a check every ten minutes", "global health check", {"checkIntervalSec": 600}, "checkIntervalSec': '600'"),
    ("a backend without a health check", "backend", {"healthChecks": None}, "has exactly one health check"),
    ("a backend balanced by utilization", "backend", _backend(), "Balancing mode must be CONNECTION for an INTERNAL backend"),
    ("a backend with a capacity", "backend", _backend(balancingMode="CONNECTION", capacityScaler=1.0),
     "cannot be set for non-managed backend service, found value 1.0"),
    ("a backend of HTTP", "backend", {"protocol": "HTTP"}, "Invalid for an INTERNAL backend service"),
    ("a backend with a missing group", "backend", {"backends": [{"group": "none", "balancingMode": "CONNECTION"}]}, "'none' was"),
    ("six ports", "forwarding rule", {"ports": [str(i) for i in range(1, 7)]}, "At most 5 ports may be specified"),
    ("no port", "forwarding rule", {"ports": None}, "must specify at least one port"),
    ("some ports and all", "forwarding rule", {"allPorts": True}, "give ports, or allPorts, not both"),
    ("a range of ports", "forwarding rule", {"portRange": "1-9"}, "Not for an INTERNAL forwarding rule"),
    ("a rule without a backend", "forwarding rule", {"backendService": None}, "needs a backend service"),
    ("an external backend", "forwarding rule",
     lambda p: {"backendService": p.make("backend", name="b", loadBalancingScheme="EXTERNAL").id}, "scheme is EXTERNAL"),
    ("a backend with another protocol", "forwarding rule", {"ipProtocol": "UDP"}, "backend service's protocol is TCP"),
    ("a rule without a subnetwork", "forwarding rule", {"subnetwork": None}, "Subnetwork should be specified"),
    ("a missing reserved address", "forwarding rule", {"ipAddress": "none"}, "'none' was not found"),
    ("an address outside the subnetwork", "forwarding rule", {"ipAddress": "10.1.0.5"}, "is outside the subnetwork CIDR"),
    ("a name with hyphens for Google's APIs", "endpoint of Google's APIs", {"name": "a-b"}, "1 to 20 characters"),
    ("a scheme for Google's APIs", "endpoint of Google's APIs", {"loadBalancingScheme": None}, "Must be empty"),
    ("an address with another purpose for Google's APIs", "endpoint of Google's APIs",
     lambda p: {"ipAddress": p.make("global address", name="x", purpose="VPC_PEERING", address="10.8.0.0").id},
     "purpose must be PRIVATE_SERVICE_CONNECT"),
    ("another network's address for Google's APIs", "endpoint of Google's APIs",
     lambda p: {"network": p.make("network", name="b").id}, "is of another network"),
]  # fmt: skip

MACHINES: list[Row] = [
    ("user data of more than 256 KiB", "instance", {"metadata": {"user-data": "x" * (256 * KIB + 1)}}, "at most 262144 b"),
    ("metadata of more than 512 KiB", "template", {"metadata": {k: "x" * 200 * KIB for k in "abc"}}, "at most 524288 b"),
    ("a start-up script too long", "template", {"metadataStartupScript": "x" * (256 * KIB + 1)}, "at most 262144 bytes"),
    ("a tag twice", "instance", {"tags": ["a", "a"]}, "no two alike"),
    ("an invalid tag", "template", {"tags": ["A"]}, "'A'. Must be a match of regex"),
    ("a spot machine that restarts", "template", {"scheduling": {"provisioningModel": "SPOT", "preemptible": True}},
     "preemptible be false when AutomaticRestart is true"),
    ("a spot machine that is not preemptible", "instance",
     {"scheduling": {"provisioningModel": "SPOT", "preemptible": False, "automaticRestart": False}}, "needs preemptible"),
    ("a GPU machine that migrates", "template", {"machineType": "a3-highgpu-8g"}, "do not support live migration"),
    ("a machine with an attached GPU that migrates", "instance", {"guestAccelerators": [{"type": "t4", "count": 1}]}, "live migration"),
    ("a second boot disk", "template", {"disks": [{"boot": True}, {"boot": True}]}, "Only the first disk .* disk.1.boot"),
    ("a local disk that is not SCRATCH", "template", {"disks": [{"boot": True}, {"diskType": "local-ssd"}]}, "SCRATCH disks must"),
    ("a local disk of another size", "template",
     {"disks": [{"boot": True}, {"type": "SCRATCH", "diskType": "local-ssd", "diskSizeGb": 100}]}, "disk 1 is 100"),
    ("an interface without a subnetwork", "instance", lambda p: {"networkInterfaces": [{"network": p["network"].id}]},
     "Subnetwork should be specified for custom subnetmode network"),
    ("an interface in two networks", "instance",
     lambda p: _interface(network=p.make("network", name="b").id)(p), "is not valid for Network"),
    ("an interface's address outside", "instance", _interface(networkIp="10.0.9.9"), "outside the subnetwork CIDR"),
    ("an interface's address that Google reserves", "instance", _interface(networkIp="10.0.0.255"), "address is reserved"),
    ("a machine with a missing account", "instance", {"serviceAccount": {"email": "a@apes.iam.gserviceaccount.com"}},
     "Service account a@apes.* does not exist"),
    ("a template with a missing account", "template", {"serviceAccount": {"email": "a@apes.iam.gserviceaccount.com"}},
     "Service account a@apes.* does not exist"),
    ("a missing reservation", "instance",
     {"reservationAffinity": {"specificReservation": {"key": "k", "values": ["none"]}}}, "'none' was not found"),
    ("a zone of another region", "group", {"distributionPolicyZones": ["us-central1-a"]}, "'us-central1-a'. Unknown zone"),
    ("an unknown zone", "instance", {"zone": "europe-west4-z"}, "Unknown zone"),
    ("a base name too long", "group", {"baseInstanceName": "a" * 59}, "at most 58 characters"),
    ("one surplus host in three zones", "group", _update(maxSurgeFixed=1), "maxSurge for regional managed instance group"),
    ("two hosts fewer in three zones", "group", _update(maxUnavailableFixed=2), "either 0 or at least equal to the number"),
    ("surplus hosts that are recreated", "group", _update(replacementMethod="RECREATE"), "maxSurge must be equal to 0"),
    ("no way to roll", "group", _update(maxSurgeFixed=0), "cannot both be 0"),
    ("any zone, and redistribution", "group", {"distributionPolicyTargetShape": "ANY"}, "redistribution must be disabled"),
    ("a missing template", "group", {"versions": [{"instanceTemplate": "none"}]}, "'none' was not found"),
]  # fmt: skip

DISKS: list[Row] = [
    ("an unknown disk type", "disk", {"type": "pd-fast"}, "referenced diskType resource cannot be found"),
    ("a disk too large", "disk", {"size": 65537}, "Disk size cannot be larger than 65536 GB"),
    ("IOPS of a disk type without them", "disk", {"type": "pd-ssd", "provisionedIops": 3000}, "Not supported by disk type"),
    ("more IOPS than the size allows", "disk", {"size": 10, "provisionedIops": 6000}, "takes 3000 to 5000 IOPS"),
    ("more IOPS than any disk has", "disk", {"size": 1000, "provisionedIops": 200000}, "to 160000 IOPS"),
    ("fewer IOPS than any disk has", "disk", {"provisionedIops": 100}, "takes 3000 to 50000 IOPS"),
    ("more throughput than any disk has", "disk", {"provisionedThroughput": 5000}, "at most 2400 MB/s"),
    ("a disk in another zone", "attached disk",
     lambda p: {"disk": p.make("disk", zone=f"{REGION}-b").id}, "The disk is in zone europe-west4-b"),
    ("a machine in another zone", "attached disk", {"zone": f"{REGION}-b"}, "The instance is in europe-west4-a"),
    ("a disk that has a machine", "attached disk",
     lambda p: {"disk": p["attached disk"].inputs["disk"], "instance": p.make(
         "instance", name="b", networkInterfaces=[{"subnetwork": p["subnetwork"].id}]).id},
     "The disk resource '.*/etcd-0' is already being used by"),
    ("a key of another region", "disk",
     lambda p: {"diskEncryptionKey": {"kmsKeySelfLink": p.make(
         "key", keyRing=p.make("key ring", location="us-central1").id).id}}, "Cross-region references are not allowed"),
    ("a missing policy", "policy of a disk", {"name": "none"}, "'none' was not found"),
]  # fmt: skip

SERVICES: list[Row] = [
    ("an account's short name", "account", {"accountId": "etcd"}, '"accountId" ."etcd". doesn\'t match'),
    ("an account's long name", "account", {"accountId": "a" * 31}, "6 to 30"),
    ("an account's long description", "account", {"description": "x" * 257}, r"range \(0 - 256\)"),
    ("a role's name with hyphens", "role", {"roleId": "a-reader"}, '"roleId" ."a-reader". doesn\'t match'),
    ("an invalid permission", "role", {"permissions": ["read"]}, "Permission read is not valid"),
    ("an invalid member", "member of the project", {"member": "me@example.com"}, "invalid value for member"),
    ("a missing member", "member of a bucket", {"member": "serviceAccount:a@apes.iam.gserviceaccount.com"},
     "Service account a@apes.iam.gserviceaccount.com does not exist"),
    ("a condition with 13 logical operators", "member of the project",
     {"condition": {"title": "t", "expression": " || ".join(f'resource.name == "!&&{i}"' for i in range(14))}},
     "has 13 logical operators; at most 12"),
    ("a condition of a bucket with too many logical operators", "member of a bucket",
     {"condition": {"title": "t", "expression": " && ".join(["!(resource.type != 'a')"] * 7)}}, "has 13 logical operators"),
    ("a malformed role", "member of a key", {"role": "viewer"}, "Role viewer is not supported"),
    ("a missing role", "member of a secret", {"role": "projects/apes/roles/none"}, "does not exist in the res"),
    ("a member of a missing key", "member of a key", {"cryptoKeyId": "none"}, "'none' was not found"),
    ("a key ring's name with dots", "key ring", {"name": "a.b"}, '"name" ."a.b". doesn\'t match'),
    ("a key that rotates each hour", "key", {"rotationPeriod": "3600s"}, "must be greater than one day"),
    ("a rotation in days", "key", {"rotationPeriod": "90d"}, "Invalid rotation period format: 90d"),
    ("a key for signing that rotates", "key", {"purpose": "ASYMMETRIC_SIGN"}, "only keys for ENCRYPT_DECRYPT rotate"),
    ("a secret's name with dots", "secret", {"secretId": "ca.key"}, '"secretId" ."ca.key". doesn\'t match'),
    ("a secret with two kinds of replication", "secret", {"replication": {"auto": {}, "userManaged": {}}}, "one of `auto,user_managed"),
    ("a secret without replicas", "secret", {"replication": {"userManaged": {"replicas": []}}}, "at least 1 is required"),
    ("a global secret with a regional key", "secret",
     lambda p: {"replication": {"auto": {"customerManagedEncryption": {"kmsKeyName": p["key"].id}}}},
     "must be in location 'global'"),
    ("a payload of more than 64 KiB", "secret version", {"secretData": "x" * (64 * KIB + 1)}, "at most 65536 bytes"),
    ("a version without a value", "secret version", {"secretData": None}, "one of `secret_data,secret_data_wo` must"),
    ("a bucket's name with capitals", "bucket", {"name": "Apes"}, '"name" ."Apes". doesn\'t match'),
    ("a bucket named after Google", "bucket", {"name": "my-google-things"}, "nowhere google"),
    ("a retention that is too long", "bucket", {"retentionPolicy": {"retentionPeriod": "3155760000"}}, "less than 3155760000"),
    ("a bucket's key of another region", "bucket",
     lambda p: {"location": "EU", "encryption": {"defaultKmsKeyName": p["key"].id}}, "not in the location of the buc"),
    ("logs to a missing bucket", "bucket", {"logging": {"logBucket": "none"}}, "The specified bucket does not exist"),
    ("a zone without the final dot", "zone", {"dnsName": "apes.internal"}, "end it with a dot"),
    ("a public zone for networks", "zone", {"visibility": "public"}, "only private zones have one"),
    ("a second zone with the same name in a network", "zone", lambda p: {"name": p["zone"].inputs["name"] + "2"},
     "is already bound to zone '.*/apes' with the same DNS name"),
    ("a record without the final dot", "record", {"name": "api.apes.internal"}, "does not end with trailing dot"),
    ("a record outside its zone", "record", {"name": "api.example.com."}, "names of this zone end with apes.internal."),
    ("an address that is a name", "record", {"rrdatas": ["api."]}, r"rrdata\[0\]': 'api.', invalid; an address of IPv4"),
    ("a record without a value", "record", {"rrdatas": None}, "one of `routing_policy,rrdatas` must be specified"),
]  # fmt: skip

ROWS = [*NETWORK, *FIREWALL, *POLICY, *ROUTING, *BALANCING, *MACHINES, *DISKS, *SERVICES]


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


@pytest.mark.parametrize(("_", "kind", "change", "words"), ROWS, ids=[row[0] for row in ROWS])
def test_google_cloud_refuses(project: Project, _: str, kind: str, change: Any, words: str) -> None:
    changes = change(project) if callable(change) else change
    with pytest.raises(RefusalError, match=words) as refusal:
        project.make(kind, **changes)
    assert "; " in str(refusal.value), "a refusal gives a way out"


def test_a_member_has_a_role_by_at_most_twenty_conditions(project: Project) -> None:
    def grant(number: int, kind: str = "member of the project") -> None:
        condition = {"title": f"part {number}", "expression": 'resource.type == "a"'}
        project.make(kind, role="roles/storage.objectUser", condition=condition)

    for number in range(20):
        grant(number)
    grant(20, "member of a bucket")
    with pytest.raises(RefusalError, match="by 20 conditions already; at most 20"):
        grant(20)


def test_an_address_has_one_owner(project: Project) -> None:
    project["address"]
    with pytest.raises(RefusalError, match="IP '10.0.0.5' is already being used .*addresses/api has it"):
        project.make("address", name="other")
    host = _interface(networkIp="10.0.0.5")(project)
    project.make("instance", **host)
    with pytest.raises(RefusalError, match="IP '10.0.0.5' is already being used .*instances/etcd-0 has it"):
        project.make("instance", name="b", **host)
    with pytest.raises(RefusalError, match="IP '10.0.0.5' is already being used by another resource"):
        project["forwarding rule"]


def test_rules_share_an_address_that_is_reserved_for_sharing(project: Project) -> None:
    project.records["address"] = project.make("address", purpose="SHARED_LOADBALANCER_VIP")
    first = project["forwarding rule"]
    second = project.make("forwarding rule", name="more", ports=["8443"])
    assert first.outputs["ipAddress"] == second.outputs["ipAddress"] == "10.0.0.5"


def test_two_networks_may_have_the_same_addresses(project: Project) -> None:
    project["address"]
    other = project.make("subnetwork", network=project.make("network", name="b").id, name="b").id
    again = project.make("address", name="b", subnetwork=other)
    host = project.make("instance", networkInterfaces=[{"subnetwork": other, "networkIp": "10.0.0.5"}])
    assert again.key in host.targets
    assert project["address"].key not in host.targets


@pytest.mark.parametrize("kind", ["backend", "forwarding rule", "nat", "tunnel", "group", "address"])
def test_related_resources_must_be_in_one_region(api: Any, kind: str) -> None:
    project = Project(api("gcp"))
    project[kind]
    away = Project(api("gcp", project.world, region="us-central1", zone="us-central1-a"), project.records)
    changes = {"distributionPolicyZones": None, "autoHealingPolicies": None} if kind == "group" else {}
    with pytest.raises(RefusalError, match="Cross-region references are not allowed.*it is in europe-west4, but this"):
        away.make(kind, **changes)


def test_an_instance_must_be_stopped_for_some_changes(project: Project) -> None:
    host = project["instance"]
    with pytest.raises(RefusalError, match="requires stopping it.*machineType changes"):
        project.api.update(host, machineType="n2-standard-8")
    project.api.update(host, machineType="n2-standard-8", allowStoppingForUpdate=True)


def test_a_locked_retention_only_grows(project: Project) -> None:
    bucket = project.make("bucket", retentionPolicy={"isLocked": True, "retentionPeriod": "100"})
    with pytest.raises(RefusalError, match="Cannot reduce retention duration of a locked Retention Policy"):
        project.api.update(bucket, retentionPolicy={"isLocked": True, "retentionPeriod": "99"})
    project.api.update(bucket, retentionPolicy={"isLocked": True, "retentionPeriod": "101"})
