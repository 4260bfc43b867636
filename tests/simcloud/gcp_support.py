"""A Google Cloud project with one valid resource of every type; tests change one property of one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.simcloud.world import Record

Inputs = dict[str, Any]
AGENT = "service-1@compute-system.iam.gserviceaccount.com"
REGION, ZONE = "europe-west4", "europe-west4-a"


class Project:
    """project["network"]: the network, created once. project.make("network", name="x"): another one, with these changes.

    records: resources that exist already.
    """

    def __init__(self, api: Any, records: Mapping[str, Record] | None = None) -> None:
        self.api = api
        self.world = api.world
        self.records = dict(records or {})

    def __getitem__(self, kind: str) -> Record:
        if kind not in self.records:
            self.records[kind] = self.make(kind)
        return self.records[kind]

    def make(self, kind: str, **changes: object) -> Record:
        token, inputs = KINDS[kind]
        combined = {**inputs(self), **changes}
        record: Record = self.api.create(
            token, kind, **{name: value for name, value in combined.items() if value is not None}
        )
        return record

    def link(self, kind: str) -> str:
        return str(self[kind].outputs["selfLink"])

    def of(self, kind: str, output: str) -> Any:
        return self[kind].outputs[output]


def _named(name: str, **inputs: object) -> Callable[[Project], Inputs]:
    return lambda _: {"name": name, **inputs}


def _instance(project: Project) -> Inputs:
    return {
        "name": "etcd-0",
        "zone": ZONE,
        "machineType": "n2-standard-4",
        "bootDisk": {"initializeParams": {"image": "debian"}},
        "networkInterfaces": [{"subnetwork": project["subnetwork"].id, "networkIp": "10.0.0.10"}],
        "metadata": {"user-data": "#cloud-config"},
        "serviceAccount": {"email": project.of("account", "email"), "scopes": ["cloud-platform"]},
        "deletionProtection": False,
    }


def _template(project: Project) -> Inputs:
    return {
        "name": "hosts",
        "machineType": "n2-standard-4",
        "disks": [{"boot": True, "sourceImage": "debian"}],
        "networkInterfaces": [{"subnetwork": project["subnetwork"].id}],
    }


def _group(project: Project) -> Inputs:
    return {
        "name": "api",
        "baseInstanceName": "api",
        "versions": [{"instanceTemplate": project.of("template", "selfLinkUnique")}],
        "distributionPolicyZones": [f"{REGION}-{letter}" for letter in "abc"],
        "autoHealingPolicies": {"healthCheck": project["health check"].id, "initialDelaySec": 300},
        "updatePolicy": {"maxSurgeFixed": 3, "maxUnavailableFixed": 0, "type": "PROACTIVE", "minimalAction": "REPLACE"},
    }


def _backend(project: Project) -> Inputs:
    return {
        "name": "api",
        "loadBalancingScheme": "INTERNAL",
        "protocol": "TCP",
        "healthChecks": project["health check"].id,
        "backends": [{"group": project.of("group", "instanceGroup"), "balancingMode": "CONNECTION"}],
    }


def _forwarding_rule(project: Project) -> Inputs:
    return {
        "name": "api",
        "loadBalancingScheme": "INTERNAL",
        "backendService": project["backend"].id,
        "subnetwork": project["subnetwork"].id,
        "network": project["network"].id,
        "ipAddress": project.of("address", "address"),
        "ports": ["6443", "8132"],
    }


def _tunnel(project: Project) -> Inputs:
    return {
        "name": "site",
        "vpnGateway": project["gateway"].id,
        "vpnGatewayInterface": 0,
        "peerExternalGateway": project["peer gateway"].id,
        "peerExternalGatewayInterface": 0,
        "router": project["router"].id,
        "sharedSecret": "psk",
    }


def _secret(project: Project) -> Inputs:
    return {"secretId": "menagerie_apes_ca", "replication": {"userManaged": {"replicas": [{"location": REGION}]}}}


def _psc(project: Project) -> Inputs:
    return {
        "name": "apis",
        "target": "all-apis",
        "network": project["network"].id,
        "ipAddress": project["global address"].id,
        "loadBalancingScheme": "",
    }


def _member(path: str, kind: str) -> Callable[[Project], Inputs]:
    return lambda project: {
        path: project[kind].id,
        "role": "roles/viewer",
        "member": project.of("account", "member"),
    }


def _policy_rule(project: Project, **changes: object) -> Inputs:
    return {
        "priority": 1000,
        "action": "allow",
        "direction": "INGRESS",
        "match": {"srcIpRanges": ["10.0.0.0/24"], "layer4Configs": [{"ipProtocol": "tcp", "ports": ["6443"]}]},
        "targetServiceAccounts": [project.of("account", "email")],
        **changes,
    }


def policy_rules(*changes: Mapping[str, object]) -> Callable[[Project], Inputs]:
    """Return a policy with one rule per argument, each a valid rule with these changes."""
    return lambda project: {"rules": [_policy_rule(project, **change) for change in changes]}


def _binding(path: str, kind: str) -> Callable[[Project], Inputs]:
    return lambda project: {
        path: project[kind].id,
        "role": "roles/viewer",
        "members": [project.of("account", "member")],
    }


# Name of a kind -> its type, and the inputs of a valid resource.
KINDS: Mapping[str, tuple[str, Callable[[Project], Inputs]]] = {
    "network": ("gcp:compute/network:Network", _named("apes", autoCreateSubnetworks=False)),
    "subnetwork": (
        "gcp:compute/subnetwork:Subnetwork",
        lambda project: {"name": "nodes", "network": project["network"].id, "ipCidrRange": "10.0.0.0/24"},
    ),
    "firewall": (
        "gcp:compute/firewall:Firewall",
        lambda project: {
            "name": "api",
            "network": project["network"].id,
            "allows": [{"protocol": "tcp", "ports": ["6443"]}],
            "sourceRanges": ["10.0.0.0/24"],
            "targetServiceAccounts": [project.of("account", "email")],
        },
    ),
    "firewall policy": (
        "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules",
        lambda project: {"name": "apes", **policy_rules({})(project)},
    ),
    "association of a policy": (
        "gcp:compute/regionNetworkFirewallPolicyAssociation:RegionNetworkFirewallPolicyAssociation",
        lambda project: {
            "name": "apes",
            "attachmentTarget": project["network"].id,
            "firewallPolicy": project.of("firewall policy", "name"),
        },
    ),
    "address": (
        "gcp:compute/address:Address",
        lambda project: {
            "name": "api",
            "addressType": "INTERNAL",
            "subnetwork": project["subnetwork"].id,
            "address": "10.0.0.5",
        },
    ),
    "public address": ("gcp:compute/address:Address", _named("nat")),
    "global address": (
        "gcp:compute/globalAddress:GlobalAddress",
        lambda project: {
            "name": "apis",
            "addressType": "INTERNAL",
            "purpose": "PRIVATE_SERVICE_CONNECT",
            "network": project["network"].id,
            "address": "10.9.0.1",
        },
    ),
    "route": (
        "gcp:compute/route:Route",
        lambda project: {
            "name": "out",
            "network": project["network"].id,
            "destRange": "0.0.0.0/0",
            "nextHopGateway": "default-internet-gateway",
        },
    ),
    "router": (
        "gcp:compute/router:Router",
        lambda project: {"name": "apes", "network": project["network"].id, "bgp": {"asn": 64512}},
    ),
    "nat": (
        "gcp:compute/routerNat:RouterNat",
        lambda project: {
            "name": "out",
            "router": project["router"].outputs["name"],
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        },
    ),
    "gateway": (
        "gcp:compute/haVpnGateway:HaVpnGateway",
        lambda project: {"name": "apes", "network": project["network"].id},
    ),
    "peer gateway": (
        "gcp:compute/externalVpnGateway:ExternalVpnGateway",
        _named(
            "site",
            redundancyType="TWO_IPS_REDUNDANCY",
            interfaces=[{"id": 0, "ipAddress": "198.51.100.1"}, {"id": 1, "ipAddress": "198.51.100.2"}],
        ),
    ),
    "tunnel": ("gcp:compute/vPNTunnel:VPNTunnel", _tunnel),
    "interface": (
        "gcp:compute/routerInterface:RouterInterface",
        lambda project: {
            "name": "site-0",
            "router": project["router"].outputs["name"],
            "vpnTunnel": project["tunnel"].outputs["name"],
            "ipRange": "169.254.0.1/30",
        },
    ),
    "peer": (
        "gcp:compute/routerPeer:RouterPeer",
        lambda project: {
            "name": "site-0",
            "router": project["router"].outputs["name"],
            "interface": project["interface"].outputs["name"],
            "peerAsn": 64600,
        },
    ),
    "route policy": (
        "gcp:compute/routerRoutePolicy:RouterRoutePolicy",
        lambda project: {
            "name": "from-site",
            "router": project["router"].outputs["name"],
            "type": "ROUTE_POLICY_TYPE_IMPORT",
            "terms": [{"priority": 1, "match": {"expression": "true"}, "actions": [{"expression": "drop()"}]}],
        },
    ),
    "health check": (
        "gcp:compute/regionHealthCheck:RegionHealthCheck",
        _named("api", httpsHealthCheck={"port": 6443, "requestPath": "/readyz"}),
    ),
    "global health check": ("gcp:compute/healthCheck:HealthCheck", _named("api", tcpHealthCheck={"port": 6443})),
    "backend": ("gcp:compute/regionBackendService:RegionBackendService", _backend),
    "forwarding rule": ("gcp:compute/forwardingRule:ForwardingRule", _forwarding_rule),
    "endpoint of Google's APIs": ("gcp:compute/globalForwardingRule:GlobalForwardingRule", _psc),
    "template": ("gcp:compute/instanceTemplate:InstanceTemplate", _template),
    "regional template": ("gcp:compute/regionInstanceTemplate:RegionInstanceTemplate", _template),
    "group": ("gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager", _group),
    "zonal group": (
        "gcp:compute/instanceGroupManager:InstanceGroupManager",
        lambda project: {
            "name": "a",
            "baseInstanceName": "a",
            "versions": [{"instanceTemplate": project["template"].id}],
        },
    ),
    "instance group": ("gcp:compute/instanceGroup:InstanceGroup", _named("machines", zone=ZONE)),
    "instance": ("gcp:compute/instance:Instance", _instance),
    "disk": ("gcp:compute/disk:Disk", _named("etcd-0", zone=ZONE, type="hyperdisk-balanced", size=100)),
    "attached disk": (
        "gcp:compute/attachedDisk:AttachedDisk",
        lambda project: {"disk": project["disk"].id, "instance": project["instance"].id},
    ),
    "policy": (
        "gcp:compute/resourcePolicy:ResourcePolicy",
        _named(
            "daily", snapshotSchedulePolicy={"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00"}}}
        ),
    ),
    "policy of a disk": (
        "gcp:compute/diskResourcePolicyAttachment:DiskResourcePolicyAttachment",
        lambda project: {"name": project.of("policy", "name"), "disk": project.of("disk", "name"), "zone": ZONE},
    ),
    "reservation": (
        "gcp:compute/reservation:Reservation",
        _named(
            "gpus", zone=ZONE, specificReservation={"count": 1, "instanceProperties": {"machineType": "n2-standard-4"}}
        ),
    ),
    "zone": (
        "gcp:dns/managedZone:ManagedZone",
        lambda project: {
            "name": "apes",
            "dnsName": "apes.internal.",
            "visibility": "private",
            "privateVisibilityConfig": {"networks": [{"networkUrl": project["network"].id}]},
        },
    ),
    "record": (
        "gcp:dns/recordSet:RecordSet",
        lambda project: {
            "managedZone": project.of("zone", "name"),
            "name": "api.apes.internal.",
            "type": "A",
            "ttl": 60,
            "rrdatas": ["10.0.0.5"],
        },
    ),
    "key ring": ("gcp:kms/keyRing:KeyRing", _named("apes", location=REGION)),
    "key": (
        "gcp:kms/cryptoKey:CryptoKey",
        lambda project: {"name": "disks", "keyRing": project["key ring"].id, "rotationPeriod": "7776000s"},
    ),
    "secret": ("gcp:secretmanager/secret:Secret", _secret),
    "secret version": (
        "gcp:secretmanager/secretVersion:SecretVersion",
        lambda project: {"secret": project["secret"].id, "secretData": "value"},
    ),
    "account": ("gcp:serviceaccount/account:Account", lambda _: {"accountId": "etcd-0"}),
    "role": (
        "gcp:projects/iAMCustomRole:IAMCustomRole",
        lambda _: {"roleId": "reader", "title": "Reader", "permissions": ["secretmanager.versions.access"]},
    ),
    "service agent": (
        "gcp:projects/serviceIdentity:ServiceIdentity",
        lambda _: {"service": "secretmanager.googleapis.com"},
    ),
    "log sink": (
        "gcp:logging/projectSink:ProjectSink",
        lambda project: {"name": "flows", "destination": f"storage.googleapis.com/{project['bucket'].id}"},
    ),
    "bucket": ("gcp:storage/bucket:Bucket", _named("apes-backups", location=REGION, uniformBucketLevelAccess=True)),
    "object": (
        "gcp:storage/bucketObject:BucketObject",
        lambda project: {"name": "snapshot", "bucket": project["bucket"].id},
    ),
    "member of the project": (
        "gcp:projects/iAMMember:IAMMember",
        lambda project: {"role": "roles/logging.logWriter", "member": project.of("account", "member")},
    ),
    "binding of a key": ("gcp:kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding", _binding("cryptoKeyId", "key")),
    "binding of a secret": ("gcp:secretmanager/secretIamBinding:SecretIamBinding", _binding("secretId", "secret")),
    "member of a key": ("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember", _member("cryptoKeyId", "key")),
    "member of a key ring": ("gcp:kms/keyRingIAMMember:KeyRingIAMMember", _member("keyRingId", "key ring")),
    "member of a secret": ("gcp:secretmanager/secretIamMember:SecretIamMember", _member("secretId", "secret")),
    "member of a bucket": ("gcp:storage/bucketIAMMember:BucketIAMMember", _member("bucket", "bucket")),
    "member of an account": ("gcp:serviceaccount/iAMMember:IAMMember", _member("serviceAccountId", "account")),
}
