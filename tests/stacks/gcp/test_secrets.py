"""Who may read and write what: secrets, buckets, keys."""

from __future__ import annotations

import json

from simcloud.values import plain

READ, WRITE_OBJECTS = "roles/secretmanager.secretAccessor", "roles/storage.objectCreator"


def rights(run):
    """Reader -> role -> plain names of secrets."""
    prefix = f"menagerie_{run.cluster.name}_"
    found = {}
    for member in run.all("SecretIamMember"):
        name = member["secretId"].rpartition("/")[2].removeprefix(prefix)
        own = found.setdefault(run.reader(member["member"]), {})
        own.setdefault(member["role"].rpartition("/")[2], set()).add(name)
    return found


def kinds(names):
    return sorted("payload" if name.startswith("payload-") else name for name in names)


def test_each_reader_reads_its_payload_and_its_bundle_and_nobody_else_s(run):
    found = rights(run)
    hosts = {host.name for host in run.plan.hosts()}
    assert set(found) == {*hosts, "api-servers", "workers"}
    for host in hosts:
        assert kinds(found[host]["secretmanager.secretAccessor"]) == ["payload", f"secrets-{host}"]
    payloads = [name for own in found.values() for name in own["secretmanager.secretAccessor"] if "payload" in name]
    assert len(payloads) == len(set(payloads))
    assert kinds(found["api-servers"]["secretmanager.secretAccessor"]) == ["payload", "secrets-api-servers"]


def test_workers_read_the_join_token_which_only_api_servers_write(run):
    found = rights(run)
    assert "join-token" in found["workers"]["secretmanager.secretAccessor"]
    (role,) = run.all("IAMCustomRole")
    assert role["permissions"] == ["secretmanager.versions.add", "secretmanager.versions.destroy"]
    written = {reader: own[role["roleId"]] for reader, own in found.items() if role["roleId"] in own}
    assert written == {"api-servers": {"join-token"}}
    # The program destroys versions that it replaces, so the engine knows of none.
    assert not [each for each in run.all("SecretVersion") if each["secret"].endswith("join-token")]


def test_no_right_is_given_on_the_whole_project(run):
    given = {
        record.type.rpartition(":")[2]
        for record in run.records
        if "IAMMember" in record.type or "IamMember" in record.type
    }
    assert given == {"SecretIamMember", "CryptoKeyIAMMember", "BucketIAMMember"}
    assert not [member for kind in given for member in run.all(kind) if "allUsers" in member["member"]]


def test_only_google_s_own_services_use_the_key(run):
    members = {each["member"].rpartition("@")[2] for each in run.all("CryptoKeyIAMMember")}
    assert members == {
        "compute-system.iam.gserviceaccount.com",
        "gs-project-accounts.iam.gserviceaccount.com",
        "gcp-sa-secretmanager.iam.gserviceaccount.com",
    }
    assert {each["role"] for each in run.all("CryptoKeyIAMMember")} == {"roles/cloudkms.cryptoKeyEncrypterDecrypter"}


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


def test_hosts_with_backups_add_objects_of_their_cluster_and_neither_read_nor_delete(langur):
    members = [each for each in langur.all("BucketIAMMember") if each.get("condition")]
    assert {langur.reader(each["member"]) for each in members} == {host.name for host in langur.plan.etcd["main"]}
    (backups,) = (each["name"] for each in langur.all("Bucket") if "-backups-" in each["name"])
    folder = f"projects/_/buckets/{backups}/objects/{langur.cluster.name}/"
    assert {(each["bucket"], each["role"], each["condition"]["expression"]) for each in members} == {
        (backups, WRITE_OBJECTS, f'resource.name.startsWith("{folder}")')
    }


def test_without_backups_nobody_writes_any(gibbon):
    (member,) = gibbon.all("BucketIAMMember")
    assert member["member"].endswith("gcp-sa-logging.iam.gserviceaccount.com")


def test_backups_are_kept_for_their_time_and_other_buckets_have_versions(langur):
    buckets = {each["name"].split("-")[-2]: each for each in langur.all("Bucket")}
    assert set(buckets) == {"backups", "logs", "artefacts"}
    assert buckets["backups"]["retentionPolicy"]["retentionPeriod"] == str(14 * 86400)
    assert "versioning" not in buckets["backups"]
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
