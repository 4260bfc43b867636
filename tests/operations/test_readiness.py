from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.errors import RefusedError
from cluster.sources import published, without_checksum
from cluster.spec import Cluster
from operations import readiness
from operations.readiness import refuse_unready

AZURE = {"control_plane": {"cloud": "azure", "region": "eastus2"}, "network": {"nodes": "10.77.0.0/16"}}

SERVED = {"PULUMI_DEBUG_PROVIDERS": "azure-native:7"}
"""Make the engine need none of our plugins."""


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Set what the cloud's module reports as missing."""
    lacking: list[str] = []
    monkeypatch.setattr(readiness, "missing", lambda *_: lacking)
    return lacking


def complete(build: Callable[..., Cluster]) -> Cluster:
    sums = {each.source: "0" * 64 for each in without_checksum(build(AZURE).spec)}
    return build({**AZURE, "artefacts": {"sha256": sums}})


def test_a_lab_needs_neither_credentials_nor_checksums(lab: Cluster) -> None:
    refuse_unready(lab, {})


def test_everything_missing_is_reported_at_once_with_what_works_without_it(
    build: Callable[..., Cluster], credentials: list[str]
) -> None:
    credentials.append("no subscription: set ARM_SUBSCRIPTION_ID")
    with pytest.raises(RefusedError) as refused:
        refuse_unready(build(AZURE), {})
    text = str(refused.value)
    assert "set ARM_SUBSCRIPTION_ID" in text
    assert "dl.k8s.io/release/v1.36.4/bin/linux/amd64/kube-apiserver" in text
    assert text.endswith("./menagerie validate lab")


def test_a_deletion_needs_no_checksums_of_what_hosts_download(
    build: Callable[..., Cluster], credentials: list[str]
) -> None:
    refuse_unready(build(AZURE), SERVED, declares=False)


def test_a_spec_with_the_unpublished_checksums_is_ready(build: Callable[..., Cluster], credentials: list[str]) -> None:
    refuse_unready(complete(build), SERVED)


def test_published_checksums_are_of_files_that_hosts_download(build: Callable[..., Cluster]) -> None:
    sources = {each.source for each in without_checksum(build(AZURE).spec)} | set(published())
    assert "kubelet" in str(sorted(published()))
    assert all(len(digest) == 64 for digest in published().values())
    assert len(sources) == 14
