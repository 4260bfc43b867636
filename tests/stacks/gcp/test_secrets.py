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
    """Reader -> role -> plain names of secrets."""
    prefix = f"menagerie_{run.cluster.name}_"
    found = {}
    for binding in run.all("SecretIamBinding"):
        name = binding["secretId"].rpartition("/")[2].removeprefix(prefix)
        for member in binding["members"]:
            own = found.setdefault(run.reader(member), {})
            own.setdefault(binding["role"].rpartition("/")[2], set()).add(name)
    return found


def test_each_reader_reads_its_bundle_and_nobody_else_s(run):
    found = rights(run)
    hosts = {host.name for host in run.plan.hosts()}
    assert set(found) == {*hosts, "api-servers", *of_workers(run.cluster)}
    for reader in (*hosts, "api-servers"):
        assert found[reader]["secretmanager.secretAccessor"] == {f"secrets-{reader}"}


def test_workers_read_the_join_token_which_only_api_servers_write(run):
    found = rights(run)
    for worker in of_workers(run.cluster):
        assert found[worker] == {"secretmanager.secretAccessor": {"secrets-workers", "join-token"}}
    writing = "secretmanager.secretVersionManager"
    assert {reader: own[writing] for reader, own in found.items() if writing in own} == {"api-servers": {"join-token"}}
    # The program destroys versions that it replaces, so the engine knows of none.
    assert not [each for each in run.all("SecretVersion") if each["secret"].endswith("join-token")]


def test_the_store_holds_bundles_and_the_join_token_alone(run):
    names = {each["secretId"].removeprefix(f"menagerie_{run.cluster.name}_") for each in run.all("Secret")}
    readers = {*(host.name for host in run.plan.hosts()), "api-servers", "workers"}
    assert names == {"join-token", *(f"secrets-{reader}" for reader in readers)}


def test_no_right_is_given_on_the_whole_project_but_those_to_make_volumes_and_to_look_at_machines(run):
    given = {
        record.type.rpartition(":")[2]
        for record in run.records
        if re.search("I[aA][mM](Member|Binding|Policy)", record.type)
    }
    assert given == {"SecretIamBinding", "CryptoKeyIAMBinding", "BucketIAMMember", "IAMMember"}
    members = [str(each.get("member") or each["members"]) for kind in given for each in run.all(kind)]
    assert not [text for text in members if "allUsers" in text or "allAuthenticatedUsers" in text]


def granted(run, reader):
    """The one right of a reader on the project: who has it, and what it is."""
    (member,) = (each for each in run.all("IAMMember") if run.reader(each["member"]) == reader)
    (role,) = (each for each in run.all("IAMCustomRole") if each["roleId"] == member["role"].rpartition("/")[2])
    return member, role


def test_api_servers_look_at_machines_of_the_clusters_pools_and_at_nothing_else(run):
    """By which they know whether who wants to join as a node is one."""
    assert {run.reader(each["member"]) for each in run.all("IAMMember")} == {"api-servers", "controllers"}
    member, role = granted(run, "api-servers")
    assert role["permissions"] == ["compute.instances.get"]
    expression = member["condition"]["expression"]
    assert expression.startswith('resource.type == "compute.googleapis.com/Instance" && (')
    named = set(re.findall(r'"/instances/{name}"\).startsWith\("([^"]+)-"', expression))
    assert named == {group["baseInstanceName"] for group in run.all("InstanceGroupManager")}


def test_one_pool_s_machines_make_volumes_of_pods_and_attach_them_to_machines_of_pools(run):
    member, role = granted(run, "controllers")
    assert role["permissions"] == list(volumes.permissions(run.cluster))
    assert not [each for each in role["permissions"] if each.endswith(("IamPolicy", "actAs", "setMetadata"))]
    expression = member["condition"]["expression"]
    assert 'resource.name.extract("/disks/{name}").startsWith("pvc-")' in expression
    named = set(re.findall(r'"/instances/{name}"\).startsWith\("([^"]+)-"', expression))
    assert named == {group["baseInstanceName"] for group in run.all("InstanceGroupManager")}
    pools = {each["labels"]["pool"]: each for each in run.all("RegionInstanceTemplate") if "pool" in each["labels"]}
    making = {name for name, each in pools.items() if run.reader(each["serviceAccount"]["email"]) == "controllers"}
    assert making == {controllers_pool(run.cluster.spec)}


def test_file_systems_come_with_rights_of_their_own_and_with_the_key(langur, gibbon):
    """langur asks for them."""
    of_files = {each for each in volumes.permissions(langur.cluster) if each.startswith("file.")}
    assert {"file.instances.create", "file.instances.delete"} <= of_files
    assert not [each for each in volumes.permissions(gibbon.cluster) if each.startswith("file.")]
    (binding,) = langur.all("CryptoKeyIAMBinding")
    assert [member for member in binding["members"] if "@cloud-filer.iam" in member]
    inside = volumes.file_range(langur.cluster)
    assert not [each for each in langur.all("Subnetwork") if inside.overlaps(IPv4Network(each["ipCidrRange"]))]
    (address,) = langur.all("GlobalAddress")
    assert IPv4Address(address["address"]) not in inside
    assert inside.subnet_of(langur.cluster.spec.network.nodes)


def test_api_servers_are_given_classes_with_the_cluster_s_key(run):
    values = {each["secret"].rpartition("_")[2]: each["secretData"] for each in run.all("SecretVersion")}
    text = json.loads(values["secrets-api-servers"])["storage-classes.json"]
    (key,) = (record.id for record in run.records if record.type.endswith(":CryptoKey"))
    assert key in text
    assert [name for name, value in values.items() if "storage-classes.json" in json.loads(value)] == [
        "secrets-api-servers"
    ]


def test_only_google_s_own_services_use_the_key(run):
    (binding,) = run.all("CryptoKeyIAMBinding")
    assert {member.rpartition("@")[2] for member in binding["members"]} == {
        "compute-system.iam.gserviceaccount.com",
        "gs-project-accounts.iam.gserviceaccount.com",
        "gcp-sa-secretmanager.iam.gserviceaccount.com",
        *(["cloud-filer.iam.gserviceaccount.com"] if run.cluster.spec.storage.file else []),
    }
    assert binding["role"] == "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def test_bundles_hold_what_a_reader_needs_as_one_object(gibbon):
    values = {each["secret"].rpartition("_")[2]: each["secretData"] for each in gibbon.all("SecretVersion")}
    bundle = json.loads(values["secrets-etcd-main-1"])
    assert "etcd-main-1-server.key" in bundle
    assert "PRIVATE KEY" in bundle["etcd-main-1-server.key"]
    assert not [name for name in bundle if "etcd-main-2" in name]


def test_values_are_secret_in_the_state(gibbon):
    versions = [each for each in gibbon.resources if each["type"].endswith(":SecretVersion")]
    assert len(versions) == len(gibbon.all("SecretVersion"))
    assert all("ciphertext" in each["inputs"]["secretData"] for each in versions)


def test_hosts_with_backups_use_the_folder_of_their_repository_and_list_nothing_else(langur):
    members = [each for each in langur.all("BucketIAMMember") if each.get("condition")]
    assert {langur.reader(each["member"]) for each in members} == {host.name for host in langur.plan.etcd["main"]}
    (backups,) = (each["name"] for each in langur.all("Bucket") if "-backups-" in each["name"])
    folder = f"{langur.cluster.name}/main/"
    whole = f"projects/_/buckets/{backups}/objects/{folder}"
    listing = f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{folder}")'
    assert {(each["bucket"], each["role"], each["condition"]["expression"]) for each in members} == {
        (backups, USE_OBJECTS, f'resource.name.startsWith("{whole}") || {listing}')
    }


def test_without_backups_nobody_writes_any(gibbon):
    members = [each["member"] for each in gibbon.all("BucketIAMMember") if "-audit-" not in each["bucket"]]
    assert [member.rpartition("@")[2] for member in members] == ["gcp-sa-logging.iam.gserviceaccount.com"]


def test_api_servers_add_to_the_bucket_of_audit_logs_which_is_retained(langur):
    (logs,) = (each for each in langur.all("Bucket") if "-audit-" in each["name"])
    assert logs["retentionPolicy"] == {"retentionPeriod": 30 * 86400}
    told = json.loads(langur.outputs["outputs"])["buckets"]["audit-logs"]
    assert (told["name"], told["locked_days"]) == (logs["name"], 30)
    (member,) = (each for each in langur.all("BucketIAMMember") if each["bucket"] == logs["name"])
    assert (langur.reader(member["member"]), member["role"]) == ("api-servers", "roles/storage.objectCreator")


def test_backups_are_kept_for_their_time_and_other_buckets_have_versions(langur):
    buckets = {each["name"].split("-")[-2]: each for each in langur.all("Bucket")}
    assert set(buckets) == {"backups", "audit", "logs", "artefacts"}
    assert buckets["backups"]["softDeletePolicy"] == {"retentionDurationSeconds": 14 * 86400}
    assert not {"versioning", "retentionPolicy"} & set(buckets["backups"])
    assert {name for name, each in buckets.items() if each.get("versioning", {}).get("enabled")} == {
        "logs",
        "artefacts",
    }
    assert all(each["uniformBucketLevelAccess"] and each["lifecycleRules"] for each in buckets.values())


def test_flow_logs_of_the_cluster_s_subnets_go_to_the_bucket_of_logs(gibbon):
    (sink,) = (plain(record.inputs) for record in gibbon.records if record.type.endswith(":ProjectSink"))
    names = {each["name"] for each in gibbon.all("Subnetwork")}
    assert all(f'"{name}"' in sink["filter"] for name in names)
    assert "-logs-" in sink["destination"]
