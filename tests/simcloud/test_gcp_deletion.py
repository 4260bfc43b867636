"""What Google Cloud refuses to delete, and what remains after a deletion."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import KINDS, Project


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


@pytest.mark.parametrize(
    ("kind", "user"),
    [
        ("network", "subnetwork"),
        ("network", "firewall"),
        ("network", "association of a policy"),
        ("firewall policy", "association of a policy"),
        ("network", "router"),
        ("network", "gateway"),
        ("network", "route"),
        ("network", "global address"),
        ("subnetwork", "address"),
        ("subnetwork", "instance"),
        ("subnetwork", "forwarding rule"),
        ("address", "forwarding rule"),
        ("global address", "endpoint of Google's APIs"),
        ("gateway", "tunnel"),
        ("peer gateway", "tunnel"),
        ("router", "tunnel"),
        ("tunnel", "interface"),
        ("interface", "peer"),
        ("health check", "backend"),
        ("health check", "group"),
        ("group", "backend"),
        ("template", "group"),
        ("backend", "forwarding rule"),
        ("disk", "attached disk"),
        ("disk", "policy of a disk"),
        ("policy", "policy of a disk"),
    ],
)
def test_a_resource_in_use_cannot_be_deleted(project: Project, kind: str, user: str) -> None:
    project[user]
    with pytest.raises(RefusalError, match="is already being used by"):
        project.api.delete(project[kind])


@pytest.mark.parametrize(
    ("kind", "user"),
    [
        ("instance", "attached disk"),
        ("account", "instance"),
        ("network", "zone"),
        ("secret", "secret version"),
        ("key", "member of a key"),
        ("key", "binding of a key"),
        ("account", "firewall policy"),
        ("role", "member of the project"),
    ],
)
def test_a_resource_that_is_only_referenced_can_be_deleted(project: Project, kind: str, user: str) -> None:
    project[user]
    project.api.delete(project[kind])
    assert project.world.get(project[kind].type, project[kind].id) is None


def test_a_zone_with_records_cannot_be_deleted(project: Project) -> None:
    project["record"]
    with pytest.raises(RefusalError, match="contains one or more 'resource records'"):
        project.api.delete(project["zone"])


def test_everything_can_be_deleted_in_reverse_order_of_creation(project: Project) -> None:
    for kind in KINDS:
        project[kind]
    records = list(project.world)
    for record in reversed(records):
        project.api.delete(record)
    assert len(project.world) == 0


@pytest.mark.parametrize(
    "kind", ["firewall", "router", "disk", "backend", "zone", "key", "secret", "bucket", "account"]
)
def test_a_deletion_policy_prevents_deletion(project: Project, kind: str) -> None:
    with pytest.raises(RefusalError, match='without setting deletion_policy="DELETE"'):
        project.api.delete(project.make(kind, deletionPolicy="PREVENT"))


def test_a_deletion_policy_protects_an_instance_too(project: Project) -> None:
    with pytest.raises(RefusalError, match='cannot destroy instance without setting deletion_policy="DELETE"'):
        project.api.delete(project.make("instance", deletionPolicy="PREVENT"))


def test_a_protected_secret_cannot_be_deleted(project: Project) -> None:
    with pytest.raises(RefusalError, match="without setting deletion_protection=false"):
        project.api.delete(project.make("secret", deletionProtection=True))


def test_a_key_and_a_key_ring_keep_their_names_permanently(project: Project) -> None:
    project["key"]
    project.api.delete(project["key"])
    project.api.delete(project["key ring"])
    with pytest.raises(RefusalError, match="KeyRing projects/apes/.*/apes already exists.*it is never deleted"):
        project.make("key ring")
    ring = project.make("key ring", name="b").id
    project.make("key", keyRing=ring)
    project.api.delete(project.make("key", name="c", keyRing=ring))
    with pytest.raises(RefusalError, match="CryptoKey .*/c already exists"):
        project.make("key", name="c", keyRing=ring)


def test_a_bucket_with_objects_is_deleted_only_by_force_and_a_locked_one_not_at_all(project: Project) -> None:
    project["object"]
    with pytest.raises(RefusalError, match="Error trying to delete bucket apes-backups without `force_destroy`"):
        project.api.delete(project["bucket"])
    project.api.delete(project.api.update(project["bucket"], forceDestroy=True))
    locked = project.make(
        "bucket", name="more", forceDestroy=True, retentionPolicy={"isLocked": True, "retentionPeriod": 9}
    )
    project.make("object", bucket=locked.id)
    with pytest.raises(RefusalError, match="contains objects that have not met the retention period yet"):
        project.api.delete(locked)
