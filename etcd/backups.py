"""Backups of an etcd by the hosts of its members: where they are stored, and the configuration of those hosts.

The units run `host/menagerie_etcd`. docs/how-to/backups.md says what is kept and what a drill proves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import Download, HostConfig, HostFile, SecretRef
from cluster.outputs import BucketOutput
from cluster.spec import Backup, Cluster, RoleName
from etcd.agent import LIBRARY
from etcd.members import member, members, settings
from etcd.templates import render
from network.addresses import AddressPlan

USE = "backups"
"""Key of the bucket in `ClusterOutputs.buckets`."""
RESTIC = "/usr/local/bin/restic"
_HOUR_MS = 3_600_000
_S3_OF_AWS = "https://s3.{region}.amazonaws.com"


def secret_name(role: RoleName) -> str:
    """Return the name of the secret that says where the backups of an etcd are and what decrypts them."""
    return f"etcd-{role}-backups.json"


def prefix(cluster: str, role: RoleName) -> str:
    """Return the folder of an etcd's repository in the bucket. A host has rights to the folders of its own members."""
    return f"{cluster}/{role}"


def url(bucket: BucketOutput, cluster: str, role: RoleName) -> str:
    """Return the repository for restic's -r ("Preparing a new repository")."""
    folder = prefix(cluster, role)
    if bucket.kind == "s3":
        server = bucket.endpoint or _S3_OF_AWS.format(region=bucket.region)
        return f"s3:{server}/{bucket.name}/{folder}"
    return f"{'azure' if bucket.kind == 'azure' else 'gs'}:{bucket.name}:/{folder}"


def environment(bucket: BucketOutput) -> dict[str, str]:
    """Return the environment that restic also needs to find the bucket. It has no credentials."""
    if bucket.kind == "azure":
        return {"AZURE_ACCOUNT_NAME": bucket.account}
    # Without it restic asks S3 for the bucket's region, which needs an extra permission.
    return {"AWS_DEFAULT_REGION": bucket.region} if bucket.kind == "s3" else {}


def key_environment(bucket_key: str) -> dict[str, str]:
    """Return restic's environment with the key of an S3 server outside the clouds.

    bucket_key: JSON of access_key_id and secret_access_key; "" in clouds.
    """
    if not bucket_key:
        return {}
    key = json.loads(bucket_key)
    return {"AWS_ACCESS_KEY_ID": key["access_key_id"], "AWS_SECRET_ACCESS_KEY": key["secret_access_key"]}


def secret(url_: str, password: str, own: Mapping[str, str]) -> str:
    """Return the value of the secret `secret_name`, for hosts."""
    return json.dumps({"url": url_, "password": password, "environment": dict(own)}, sort_keys=True)


def host_config(
    cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan, source: ArtefactSource
) -> HostConfig:
    """Return the configuration of a member's host for backups of its etcd; empty if the spec has no backups.

    Raises KeyError if `source` has no checksum for restic.
    """
    backup = settings(cluster, role).backup
    if backup is None:
        return HostConfig()
    artefact = catalogue(cluster.spec.kubernetes.version)["restic"]
    source.checksum(artefact)
    return HostConfig(
        files=_units(cluster, role, member_name, plan, backup),
        secrets=(SecretRef(secret_name(role), f"/etc/etcd/{role}/repository.json", 0o600),),
        downloads=(Download(artefact, path=RESTIC, is_late=True),),
        start=tuple(f"{unit}.timer" for unit in (backup_unit(role), drill_unit(role))),
    )


def backup_unit(role: RoleName) -> str:
    """Return the name of the unit that makes a backup at each start. Its timer starts the variant that first checks whose turn it
    is."""
    return f"etcd-{role}-backup"


def drill_unit(role: RoleName) -> str:
    """Return the name of the unit that runs a drill at each start. Its timer starts the variant that checks whose turn it is."""
    return f"etcd-{role}-drill"


def _units(
    cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan, backup: Backup
) -> tuple[HostFile, ...]:
    this = member(cluster, role, member_name, plan)
    all_members = members(cluster, role, plan)
    backup_settings = {
        "cluster": cluster.name,
        "role": role,
        "member": this.name,
        "members": {peer.name: peer.client_url for peer in all_members},
        "every": backup.every / 1000,
        "drill": backup.drill / 1000,
        "keep": -(-backup.keep // _HOUR_MS),
        "pki": f"/etc/etcd/{role}/pki",
    }
    texts = {f"/etc/etcd/{role}/backup.json": json.dumps(backup_settings, indent=1) + "\n"}
    # Members start at different offsets in the interval, and a drill one minute after the backup.
    offset_s = backup.every * all_members.index(this) // len(all_members) // 1000
    for name, what in ((backup_unit(role), "backup"), (drill_unit(role), "drill")):
        own = {"cluster": cluster.name, "role": role, "what": what, "name": name, "library": LIBRARY}
        texts[f"/etc/systemd/system/{name}.service"] = render("backup.service.j2", **own, in_turn=False)
        texts[f"/etc/systemd/system/{name}-in-turn.service"] = render("backup.service.j2", **own, in_turn=True)
        first_s = offset_s + (60 if what == "backup" else 120)
        texts[f"/etc/systemd/system/{name}.timer"] = render(
            "backup.timer.j2", **own, first_s=first_s, every_s=backup.every // 1000
        )
    return tuple(HostFile(path, text, 0o600) for path, text in texts.items())
