"""Members, API servers and workers, as the cloud was asked to create them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest

from cluster import catalogue
from cluster.files import JOIN_TOKEN
from cluster.pools import Pool
from cluster.spec import Cloud
from etcd.members import members
from network.addresses import ROLES
from stacks.gcp import hosts
from stacks.gcp.tags import base_name
from stacks.gcp.workers import autoscaler_hints
from stacks.policies.user_data import secrets_in

SECRET_WORDS = ("PRIVATE KEY-----\n", "a-pre-shared-key")
NOBODY_LOGS_IN = {"block-project-ssh-keys": "true", "enable-oslogin": "FALSE", "serial-port-enable": "FALSE"}


def machines(run):
    return run.all("Instance") + run.all("RegionInstanceTemplate")


def pools(run):
    """Return pool -> its template."""
    return {
        template["labels"]["pool"]: template
        for template in run.all("RegionInstanceTemplate")
        if "pool" in template["labels"]
    }


def packed(text):
    """Return the packed files in a startup script: path -> text."""
    placed = re.findall(r"(?m)^place (\S+) \d+ <<\.\n(\S+)\n\.$", text)
    return {path: gzip.decompress(base64.b64decode(data)).decode() for path, data in placed}


def test_user_data_is_the_small_payload_without_secrets_and_permits_no_login(run):
    limit = catalogue.of(Cloud.GCP).user_data.max_bytes
    for machine in machines(run):
        text = machine["metadata"]["startup-script"]
        assert len(text.encode()) < limit / 3
        placed = packed(text)
        assert len(placed) == 4
        (payload,) = (path for path in placed if "/payload-" in path)
        sha256, name = re.search(r'echo "(\w+)  (payload-\w+)"', text).groups()
        assert payload == f"/var/lib/menagerie/{name}"
        assert hashlib.sha256(placed[payload].encode()).hexdigest() == sha256
        assert not [word for word in SECRET_WORDS for content in (text, *placed.values()) if word in content]
        assert secrets_in(text) == []
        assert NOBODY_LOGS_IN.items() <= machine["metadata"].items()


def test_a_machines_payload_requests_only_secrets_that_its_identity_may_read(run):
    bundles = {version["secret"].rpartition("_")[2]: version["secretData"] for version in run.all("SecretVersion")}
    for machine in machines(run):
        placed = packed(machine["metadata"]["startup-script"])
        (payload,) = (json.loads(text) for path, text in placed.items() if "/payload-" in path)
        names = {secret["name"] for secret in payload["secrets"]} - {JOIN_TOKEN}
        reader = run.reader(machine["serviceAccount"]["email"])
        bundle = bundles[f"secrets-{'workers' if reader == 'controllers' else reader}"]
        assert names <= set(json.loads(bundle))


def test_machines_are_shielded_without_blocking_gpu_drivers(run):
    for machine in machines(run):
        shielded = machine["shieldedInstanceConfig"]
        assert shielded["enableVtpm"] and shielded["enableIntegrityMonitoring"]
        assert shielded["enableSecureBoot"] is not hosts.has_gpus(machine["machineType"])


def test_every_disk_bucket_and_secret_is_encrypted_with_the_clusters_key(run):
    (key,) = (record.id for record in run.records if record.type.endswith(":CryptoKey"))
    of_templates = [
        disk["diskEncryptionKey"]["kmsKeySelfLink"]
        for item in run.all("RegionInstanceTemplate")
        for disk in item["disks"]
    ]
    replicas = [item["replication"]["userManaged"]["replicas"] for item in run.all("Secret")]
    keys = [
        *of_templates,
        *(item["bootDisk"]["kmsKeySelfLink"] for item in run.all("Instance")),
        *(item["diskEncryptionKey"]["kmsKeySelfLink"] for item in run.all("Disk")),
        *(item["encryption"]["defaultKmsKeyName"] for item in run.all("Bucket")),
        *(row["customerManagedEncryption"]["kmsKeyName"] for rows in replicas for row in rows),
    ]
    assert set(keys) == {key}
    assert {row["location"] for rows in replicas for row in rows} == {run.cluster.spec.control_plane.region}


def test_members_are_where_the_plan_says_with_their_own_identities(run):
    by_reader = {run.reader(instance["serviceAccount"]["email"]): instance for instance in run.all("Instance")}
    assert len(by_reader) == len(run.all("Instance"))
    assert {
        name: (instance["zone"], instance["networkInterfaces"][0]["networkIp"]) for name, instance in by_reader.items()
    } == {host.name: (host.zone, str(host.address)) for host in run.plan.hosts()}


def test_network_disks_have_their_members_zone_and_the_specs_size_and_speed(run):
    expected = set()
    for role in ROLES:
        etcd = getattr(run.cluster.spec.etcd, role)
        if etcd.disk != "local-nvme":
            expected |= {
                (member.zone, member.name, etcd.disk, etcd.disk_size // 2**30, etcd.iops)
                for member in members(run.cluster, role, run.plan)
            }
    disks = {record.id: plain for record, plain in zip(of_type(run, "Disk"), run.all("Disk"), strict=True)}
    attached = {
        row["source"]: (instance, row) for instance in run.all("Instance") for row in instance.get("attachedDisks", ())
    }
    assert set(attached) == set(disks)
    disks_ = {
        (disk["zone"], member_of(disk["name"]), disk["type"], disk["size"], disk["provisionedIops"])
        for disk in disks.values()
    }
    assert disks_ == expected
    for source, (machine, row) in attached.items():
        assert machine["zone"] == disks[source]["zone"]
        script = machine["metadata"]["startup-script"]
        assert script and row["deviceName"] == member_of(disks[source]["name"]).rpartition("-")[0]


def of_type(run, kind):
    return [record for record in run.records if record.type.endswith(f":{kind}")]


def member_of(name):
    return "-".join(name.removesuffix("-data").split("-")[-3:])


def test_a_machine_with_local_disks_on_request_has_them(langur):
    main = [instance for instance in langur.all("Instance") if instance["machineType"] == "n2-standard-16"]
    assert len(main) == 5
    # N2 with 16 vCPUs requires two or more.
    assert {len(instance["scratchDisks"]) for instance in main} == {2}
    assert not [instance for instance in main if instance.get("attachedDisks")]


def test_members_ignore_new_user_data_and_images(gibbon):
    steps = {
        operation for operation, kind, name in gibbon.steps if kind == "Instance" and name.endswith(("-1", "-2", "-3"))
    }
    assert steps == {"same"}


def test_api_servers_roll_and_are_repaired_by_checks_without_etcd_events(run):
    (group,) = run.all("RegionInstanceGroupManager")
    zones = list(map(str, run.cluster.spec.control_plane.zones))
    assert group["distributionPolicyZones"] == zones
    assert group["targetSize"] == run.cluster.spec.control_plane.api_servers
    policy = group["updatePolicy"]
    assert (policy["type"], policy["maxSurgeFixed"], policy["maxUnavailableFixed"]) == ("PROACTIVE", len(zones), 0)
    checks = run.all("RegionHealthCheck")
    assert {check["httpsHealthCheck"]["port"] for check in checks} == {6443}
    for check in checks:
        assert check["httpsHealthCheck"]["requestPath"].startswith("/readyz?")
        assert "exclude=etcd-override-0" in check["httpsHealthCheck"]["requestPath"]
        assert "exclude=etcd&" not in check["httpsHealthCheck"]["requestPath"]
    healing = next(c for c in run.outputs_of("RegionHealthCheck") if c["selfLink"].endswith(last(group)))
    assert healing["checkIntervalSec"] * healing["unhealthyThreshold"] == 300


def last(group):
    return group["autoHealingPolicies"]["healthCheck"].rpartition("/")[2]


def test_the_load_balancer_has_the_planned_address_and_both_ports(run):
    inside = ("ForwardingRule", "RegionBackendService")
    (rule,), (backend,) = ([r for r in run.all(kind) if r["loadBalancingScheme"] == "INTERNAL"] for kind in inside)
    assert (rule["ipAddress"], rule["ports"]) == (str(run.plan.balancers[0]), ["6443", "8132"])
    assert [row["balancingMode"] for row in backend["backends"]] == ["CONNECTION"]


def test_a_pool_has_a_group_in_each_of_its_zones_starting_at_its_minimum(langur):
    sizes = {}
    for group in langur.all("InstanceGroupManager"):
        pool = group["name"].removesuffix(f"-{group['zone']}").rpartition("-")[2]
        sizes.setdefault(pool, {})[group["zone"][-1]] = group["targetSize"]
    everywhere = {"a": 0, "b": 0, "c": 0}
    assert sizes == {"reserved": {"a": 2, "b": 1, "c": 1}, "fast": {"b": 0}, "spot": everywhere, "near": {"a": 0}}
    assert {group["updatePolicy"]["type"] for group in langur.all("InstanceGroupManager")} == {"OPPORTUNISTIC"}


def test_an_update_leaves_the_size_of_pools_to_the_autoscaler(langur):
    kind = "gcp:compute/instanceGroupManager:InstanceGroupManager"
    groups = [resource for resource in langur.resources if resource["type"] == kind]
    assert [resource.get("ignoreChanges") for resource in groups] == [["targetSize"]] * len(
        langur.all("InstanceGroupManager")
    )


def test_pools_are_bought_as_in_the_spec(langur):
    templates = pools(langur)
    spot, near = templates["spot"]["scheduling"], templates["near"]["scheduling"]
    assert (spot["provisioningModel"], spot["instanceTerminationAction"]) == ("SPOT", "DELETE")
    assert (spot["automaticRestart"], spot["preemptible"]) == (False, True)
    assert {spot["onHostMaintenance"], near["onHostMaintenance"]} == {"TERMINATE"}
    assert templates["fast"]["scheduling"]["onHostMaintenance"] == "MIGRATE"
    affinities = {name: template["reservationAffinity"] for name, template in templates.items()}
    assert affinities["reserved"]["specificReservation"]["values"] == ["menagerie-c3"]
    assert {affinities[name]["type"] for name in ("fast", "spot", "near")} == {"NO_RESERVATION"}


def test_pools_are_placed_close_together_or_apart_as_in_the_spec(langur):
    policies = {record.id: record.inputs.get("groupPlacementPolicy") for record in of_type(langur, "ResourcePolicy")}
    placements = {name: policies.get(template.get("resourcePolicies")) for name, template in pools(langur).items()}
    assert placements["fast"] == {"collocation": "COLLOCATED"}
    assert placements["reserved"] == {"availabilityDomainCount": 8}
    assert (placements["near"], placements["spot"]) == (None, None)


def test_groups_of_clustered_gpus_have_a_workload_policy_and_their_machines_no_placement_policy(langur):
    """ "Compact placement policy and workload policy overview": compact policies are for other groups."""
    policies = {record.id: record.inputs.get("workloadPolicy") for record in of_type(langur, "ResourcePolicy")}
    chosen = {
        group["baseInstanceName"]: policies[group["resourcePolicies"]["workloadPolicy"]]
        for group in langur.all("InstanceGroupManager")
        if group.get("resourcePolicies")
    }
    assert chosen == {base_name(langur.cluster, "near"): {"type": "HIGH_THROUGHPUT"}}
    assert "resourcePolicies" not in pools(langur)["near"]


def test_interfaces_are_gvnic_and_rdma_buys_bandwidth_where_available(langur):
    cards = [template["networkInterfaces"][0]["nicType"] for template in machines(langur)]
    assert set(cards) == {"GVNIC"}
    tiers = {
        name: template.get("networkPerformanceConfig", {}).get("totalEgressBandwidthTier")
        for name, template in pools(langur).items()
    }
    # Machines with GPUs have the maximum bandwidth by default.
    assert tiers == {"reserved": None, "fast": "TIER_1", "spot": None, "near": None}


def test_the_autoscaler_gets_labels_and_taints_of_future_nodes(langur):
    assert pools(langur)["spot"]["metadata"]["kube-env"] == (
        "AUTOSCALER_ENV_VARS: node_labels=openai.org/gpu=a100;"
        "node_taints=openai.org/gpu=a100:NoSchedule;os=linux;arch=amd64\n"
    )
    assert autoscaler_hints(Pool(machine="c4a-standard-4")) == "AUTOSCALER_ENV_VARS: os=linux;arch=arm64\n"


@pytest.mark.parametrize(
    ("machine", "disk"),
    [("n2-standard-8", "pd-balanced"), ("c3-standard-8", "pd-balanced"), ("n4-standard-8", "hyperdisk-balanced"),
     ("c4-standard-8", "hyperdisk-balanced"), ("a3-highgpu-8g", "pd-balanced"), ("a3-ultragpu-8g", "hyperdisk-balanced")],
)  # fmt: skip
def test_the_system_disk_has_a_kind_that_the_machine_supports(machine, disk):
    assert hosts.system_disk(machine) == disk


def test_the_image_matches_the_machines_processor():
    assert hosts.image(None, "c4a-standard-4").endswith("/debian-13-arm64")
    assert hosts.image(None, "c3-standard-4").endswith("/debian-13")
    assert hosts.image("projects/own/global/images/x", "c3-standard-4") == "projects/own/global/images/x"
