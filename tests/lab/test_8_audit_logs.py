"""An API-server host is killed and replaced; its log up to a minute before is in the bucket, and stays there."""

from __future__ import annotations

import gzip
import json
import secrets
import time
from collections.abc import Iterator

import pytest
from kubernetes import client

from clients.access import Access
from clients.buckets import open_bucket
from clients.waiting import wait_until
from cluster.load import find_cluster, load_cluster
from components.control_plane import audit_log
from operations.audit_logs import newest
from operations.stack import access_to
from sandbox.lab import hosts
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(1200)]

HOST = "api-1"
LOG = "/var/log/kubernetes/audit/audit.log"


@pytest.fixture
def access(lab: Run) -> Access:
    return access_to(load_cluster(find_cluster("lab", ROOT)))


@pytest.fixture
def repaired() -> Iterator[None]:
    yield
    assert menagerie("up", "lab", "--yes").code == 0


def shipped(access: Access, host: str = HOST) -> dict[str, list[str]]:
    """Return name -> lines of every object of a host, in order."""
    bucket = access.outputs.buckets[audit_log.USE]
    store = open_bucket(bucket, access.bucket_key)
    names = sorted(entry["path"] for page in store.list(f"lab/{host}/") for entry in page)
    return {name: gzip.decompress(bytes(store.get(name).bytes())).decode().splitlines() for name in names}


def logged_word(access: Access) -> str:
    """Request an object with a unique name until the API server on `HOST` has logged it; return the name."""
    for _ in range(20):
        word = f"last-words-{secrets.token_hex(6)}"
        # A connection stays with one API server, so each request uses a new one.
        for _ in range(6):
            core = client.CoreV1Api(access.api())
            core.list_namespaced_config_map("default", field_selector=f"metadata.name={word}")
        if hosts.run(HOST, ["grep", "-q", word, LOG]).returncode == 0:
            return word
    raise AssertionError(f"none of 120 requests came to {HOST}")


@pytest.mark.usefixtures("repaired")
def test_logs_of_a_killed_api_server_are_in_the_bucket_and_its_successor_adds_its_own(
    access: Access,
) -> None:
    word = logged_word(access)
    limit_s = audit_log.SHIPPED_EVERY_S + 30
    wait_until(lambda: "" if word in str(shipped(access)) else f"{word} is not in the bucket", limit_s, print)
    hosts.run(HOST, ["rm", "-rf", "/var/log/kubernetes/audit", "/var/lib/audit-log"])
    before = shipped(access)
    hosts.kill(HOST)
    assert menagerie("up", "lab", "--yes").code == 0
    boots = {name.split("/")[2] for name in before}

    def successor() -> str:
        now = shipped(access)
        assert {name: now[name] for name in before} == before
        return "" if {name.split("/")[2] for name in now} - boots else f"the new {HOST} has shipped nothing"

    wait_until(successor, limit_s, print)
    assert (time.time() - newest(access, "lab")[HOST].at.timestamp()) < audit_log.STALE_S


def test_no_line_of_an_api_servers_log_is_missing_or_duplicated(access: Access) -> None:
    """Everything on its disk except the last minute must be shipped; the IDs of requests are unique."""
    wait_until(lambda: "" if _old() else f"everything that {HOST} has logged is too recent", 180, print)
    old, names = _old(), shipped(access)
    lines = [json.loads(line) for shipped_lines in names.values() for line in shipped_lines]
    ids = [line["auditID"] + line["stage"] for line in lines if "auditID" in line]
    assert len(ids) == len(set(ids))
    assert not [name for name in names if "-gap." in name]
    assert old <= set(ids)


def test_status_reports_the_progress_of_each_api_server(lab: Run) -> None:
    done = menagerie("status", "lab", "--json")
    items = {item["name"]: item for item in done.json["items"] if item["group"] == "audit logs"}
    assert set(items) == {"api-1", "api-2"}
    assert all(item["ok"] and "audit log shipped" in item["detail"] for item in items.values()), items


def _old() -> set[str]:
    """Return the IDs on the host's disk that must be in the bucket."""
    until = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - audit_log.SHIPPED_EVERY_S - 30))
    lines = map(json.loads, hosts.run(HOST, ["head", "-n", "200", LOG]).stdout.splitlines())
    return {entry["auditID"] + entry["stage"] for entry in lines if entry["stageTimestamp"] < until}
