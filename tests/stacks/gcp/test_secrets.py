"""Who may read and write what: secrets, buckets, keys."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, IPv4Network

from cluster.storage import controllers_pool
from sandbox.simcloud.values import plain
from stacks.gcp import volumes
from stacks.gcp.readers import of_workers

READ, USE_OBJECTS = "roles/secretmanager.secretAccessor", "roles/storage.objectUser"


def rights(run):
    """Return reader -> role -> plain names of secrets."""
    prefix = f"menagerie_{run.cluster.name}_"
    by_reader = {}
    for binding in run.all("SecretIamBinding"):
        name = binding["secretId"].rpartition("/")[2].removeprefix(prefix)
        for member in binding["members"]:
            own = by_reader.setdefault(run.reader(member), {})
            own.setdefault(binding["role"].rpartition("/")[2], set()).add(name)
    return by_reader


def test_each_reader_reads_only_its_own_bundle(run):
    by_reader = rights(run)
    hosts = {host.name for host in run.plan.hosts()}
    assert set(by_reader) == {*hosts, "api-servers", *of_workers(run.cluster)}
    for reader in (*hosts, "api-servers"):
        assert by_reader[reader]["secretmanager.secretAccessor"] == {f"secrets-{reader}"}


def test_workers_read_the_join_token_which_only_api_servers_write(run):
    by_reader = rights(run)
    for worker in of_workers(run.cluster):
        assert by_reader[worker] == {"secretmanager.secretAccessor": {"secrets-workers", "join-token"}}
    writing = "secretmanager.secretVersionManager"
    assert {reader: own[writing] for reader, own in by_reader.items() if writing in own} == {
        "api-servers": {"join-token"}
    }
    # The program destroys versions that it replaces, so the engine must not manage any.
    assert not [version for version in run.all("SecretVersion") if version["secret"].endswith("join-token")]


def test_the_store_contains_only_bundles_and_the_join_token(run):
    names = {secret["secretId"].removeprefix(f"menagerie_{run.cluster.name}_") for secret in run.all("Secret")}
    readers = {*(host.name for host in run.plan.hosts()), "api-servers", "workers"}
    assert names == {"join-token", *(f"secrets-{reader}" for reader in readers)}


def test_only_permissions_for_volumes_and_machines_are_granted_on_the_whole_project(run):
    kinds = {
        record.type.rpartition(":")[2]
        for record in run.records
        if re.search("I[aA][mM](Member|Binding|Policy)", record.type)
    }
    assert kinds == {"SecretIamBinding", "CryptoKeyIAMBinding", "BucketIAMMember", "IAMMember"}
    members = [str(grant.get("member") or grant["members"]) for kind in kinds for grant in run.all(kind)]
    assert not [text for text in members if "allUsers" in text or "allAuthenticatedUsers" in text]


def granted(run, reader):
    """Return a reader's one grant on the project: its member and its role."""
    (member,) = (item for item in run.all("IAMMember") if run.reader(item["member"]) == reader)
    (role,) = (item for item in run.all("IAMCustomRole") if item["roleId"] == member["role"].rpartition("/")[2])
    return member, role


def test_api_servers_may_describe_only_machines_of_the_clusters_pools(run):
    """They use this to check whether a host that wants to join as a node is one of them."""
    assert {run.reader(grant["member"]) for grant in run.all("IAMMember")} == {"api-servers", "controllers"}
    member, role = granted(run, "api-servers")
    assert role["permissions"] == ["compute.instances.get"]
    expression = member["condition"]["expression"]
    assert expression.startswith('resource.type == "compute.googleapis.com/Instance" && (')
    named = set(re.findall(r'"/instances/{name}"\).startsWith\("([^"]+)-"', expression))
    assert named == {group["baseInstanceName"] for group in run.all("InstanceGroupManager")}


def test_one_pools_machines_create_volumes_of_pods_and_attach_them_to_machines_of_pools(run):
    member, role = granted(run, "controllers")
    assert role["permissions"] == list(volumes.permissions(run.cluster))
    assert not [item for item in role["permissions"] if item.endswith(("IamPolicy", "actAs", "setMetadata"))]
    expression = member["condition"]["expression"]
    assert 'resource.name.extract("/disks/{name}").startsWith("pvc-")' in expression
    named = set(re.findall(r'"/instances/{name}"\).startsWith\("([^"]+)-"', expression))
    assert named == {group["baseInstanceName"] for group in run.all("InstanceGroupManager")}
    pools = {item["labels"]["pool"]: item for item in run.all("RegionInstanceTemplate") if "pool" in item["labels"]}
    making = {name for name, item in pools.items() if run.reader(item["serviceAccount"]["email"]) == "controllers"}
    assert making == {controllers_pool(run.cluster.spec)}


def test_file_systems_have_separate_permissions_and_use_the_key(langur, gibbon):
    """langur has file systems."""
    of_files = {item for item in volumes.permissions(langur.cluster) if item.startswith("file.")}
    assert {"file.instances.create", "file.instances.delete"} <= of_files
    assert not [item for item in volumes.permissions(gibbon.cluster) if item.startswith("file.")]
    (binding,) = langur.all("CryptoKeyIAMBinding")
    assert [member for member in binding["members"] if "@cloud-filer.iam" in member]
    inside = volumes.file_range(langur.cluster)
    assert not [item for item in langur.all("Subnetwork") if inside.overlaps(IPv4Network(item["ipCidrRange"]))]
    (address,) = langur.all("GlobalAddress")
    assert IPv4Address(address["address"]) not in inside
    assert inside.subnet_of(langur.cluster.spec.network.nodes)


def test_api_servers_get_storage_classes_with_the_clusters_key(run):
    values = {version["secret"].rpartition("_")[2]: version["secretData"] for version in run.all("SecretVersion")}
    text = json.loads(values["secrets-api-servers"])["storage-classes.json"]
    (key,) = (record.id for record in run.records if record.type.endswith(":CryptoKey"))
    assert key in text
    assert [name for name, value in values.items() if "storage-classes.json" in json.loads(value)] == [
        "secrets-api-servers"
    ]


def test_only_googles_own_services_use_the_key(run):
    (binding,) = run.all("CryptoKeyIAMBinding")
    assert {member.rpartition("@")[2] for member in binding["members"]} == {
        "compute-system.iam.gserviceaccount.com",
        "gs-project-accounts.iam.gserviceaccount.com",
        "gcp-sa-secretmanager.iam.gserviceaccount.com",
        *(["cloud-filer.iam.gserviceaccount.com"] if run.cluster.spec.storage.file else []),
    }
    assert binding["role"] == "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def test_a_bundle_is_one_object_with_what_its_reader_needs(gibbon):
    values = {version["secret"].rpartition("_")[2]: version["secretData"] for version in gibbon.all("SecretVersion")}
    bundle = json.loads(values["secrets-etcd-main-1"])
    assert "etcd-main-1-server.key" in bundle
    assert "PRIVATE KEY" in bundle["etcd-main-1-server.key"]
    assert not [name for name in bundle if "etcd-main-2" in name]


def test_values_are_encrypted_in_the_state(gibbon):
    versions = [resource for resource in gibbon.resources if resource["type"].endswith(":SecretVersion")]
    assert len(versions) == len(gibbon.all("SecretVersion"))
    assert all("ciphertext" in resource["inputs"]["secretData"] for resource in versions)


def test_hosts_with_backups_use_and_list_only_the_folder_of_their_repository(langur):
    members = [item for item in langur.all("BucketIAMMember") if item.get("condition")]
    assert {langur.reader(item["member"]) for item in members} == {host.name for host in langur.plan.etcd["main"]}
    (backups,) = (item["name"] for item in langur.all("Bucket") if "-backups-" in item["name"])
    folder = f"{langur.cluster.name}/main/"
    whole = f"projects/_/buckets/{backups}/objects/{folder}"
    listing = f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{folder}")'
    assert {(item["bucket"], item["role"], item["condition"]["expression"]) for item in members} == {
        (backups, USE_OBJECTS, f'resource.name.startsWith("{whole}") || {listing}')
    }


def test_without_backups_no_host_can_write_any(gibbon):
    members = [member_["member"] for member_ in gibbon.all("BucketIAMMember") if "-audit-" not in member_["bucket"]]
    assert [member.rpartition("@")[2] for member in members] == ["gcp-sa-logging.iam.gserviceaccount.com"]


def test_api_servers_add_to_the_bucket_for_audit_logs_which_is_locked(langur):
    (logs,) = (item for item in langur.all("Bucket") if "-audit-" in item["name"])
    assert logs["retentionPolicy"] == {"retentionPeriod": 30 * 86400}
    output = json.loads(langur.outputs["outputs"])["buckets"]["audit-logs"]
    assert (output["name"], output["locked_days"]) == (logs["name"], 30)
    (member,) = (item for item in langur.all("BucketIAMMember") if item["bucket"] == logs["name"])
    assert (langur.reader(member["member"]), member["role"]) == ("api-servers", "roles/storage.objectCreator")


def test_backups_are_kept_for_their_time_and_other_buckets_have_versions(langur):
    buckets = {bucket["name"].split("-")[-2]: bucket for bucket in langur.all("Bucket")}
    assert set(buckets) == {"backups", "audit", "logs", "artefacts"}
    assert buckets["backups"]["softDeletePolicy"] == {"retentionDurationSeconds": 14 * 86400}
    assert not {"versioning", "retentionPolicy"} & set(buckets["backups"])
    assert {name for name, bucket in buckets.items() if bucket.get("versioning", {}).get("enabled")} == {
        "logs",
        "artefacts",
    }
    assert all(bucket["uniformBucketLevelAccess"] and bucket["lifecycleRules"] for bucket in buckets.values())


def test_flow_logs_of_the_clusters_subnets_go_to_the_bucket_for_logs(gibbon):
    (sink,) = (plain(record.inputs) for record in gibbon.records if record.type.endswith(":ProjectSink"))
    names = {subnet["name"] for subnet in gibbon.all("Subnetwork")}
    assert all(f'"{name}"' in sink["filter"] for name in names)
    assert "-logs-" in sink["destination"]
