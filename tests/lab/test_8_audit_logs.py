"""An API-server host is killed and replaced; what it logged until a minute before is in the bucket, and stays there."""

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
def mended() -> Iterator[None]:
    yield
    assert menagerie("up", "lab", "--yes").code == 0


def shipped(access: Access, host: str = HOST) -> dict[str, list[str]]:
    """Name -> lines of every object of a host, in their order."""
    bucket = access.outputs.buckets[audit_log.USE]
    store = open_bucket(bucket, access.bucket_key)
    names = sorted(each["path"] for page in store.list(f"lab/{host}/") for each in page)
    return {name: gzip.decompress(bytes(store.get(name).bytes())).decode().splitlines() for name in names}


def last_words(access: Access) -> str:
    """The name of an object that is asked for, until the API server on `HOST` was the one that logged it."""
    for _ in range(20):
        word = f"last-words-{secrets.token_hex(6)}"
        # A connection stays with one API server, so each request has its own.
        for _ in range(6):
            core = client.CoreV1Api(access.api())
            core.list_namespaced_config_map("default", field_selector=f"metadata.name={word}")
        if hosts.run(HOST, ["grep", "-q", word, LOG]).returncode == 0:
            return word
    raise AssertionError(f"none of 120 requests came to {HOST}")


@pytest.mark.usefixtures("mended")
def test_the_last_lines_of_an_api_server_that_is_killed_are_in_the_bucket_and_its_successor_goes_on_beside_them(
    access: Access,
) -> None:
    word = last_words(access)
    bound_s = audit_log.SHIPPED_EVERY_S + 30
    wait_until(lambda: "" if word in str(shipped(access)) else f"{word} is not in the bucket", bound_s, print)
    hosts.run(HOST, ["rm", "-rf", "/var/log/kubernetes/audit", "/var/lib/audit-log"])
    before = shipped(access)
    hosts.kill(HOST)
    assert menagerie("up", "lab", "--yes").code == 0
    boots = {name.split("/")[2] for name in before}

    def successor() -> str:
        now = shipped(access)
        assert {name: now[name] for name in before} == before
        return "" if {name.split("/")[2] for name in now} - boots else f"the new {HOST} has shipped nothing"

    wait_until(successor, bound_s, print)
    assert (time.time() - newest(access, "lab")[HOST].at.timestamp()) < audit_log.STALE_S


def test_nothing_that_an_api_server_logged_is_missing_or_there_twice(access: Access) -> None:
    """Of what is on its disk, all but the last minute; the identifiers of requests are unique."""
    wait_until(lambda: "" if _old() else f"all that {HOST} has logged is too young", 180, print)
    old, names = _old(), shipped(access)
    lines = [json.loads(line) for each in names.values() for line in each]
    found = [line["auditID"] + line["stage"] for line in lines if "auditID" in line]
    assert len(found) == len(set(found))
    assert not [name for name in names if "-gap." in name]
    assert old <= set(found)


def test_status_says_how_far_each_api_server_is(lab: Run) -> None:
    done = menagerie("status", "lab", "--json")
    items = {item["name"]: item for item in done.json["items"] if item["group"] == "audit logs"}
    assert set(items) == {"api-1", "api-2"}
    assert all(item["ok"] and "audit log shipped" in item["detail"] for item in items.values()), items


def _old() -> set[str]:
    """What is on the disk of the host and must be in the bucket."""
    until = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - audit_log.SHIPPED_EVERY_S - 30))
    lines = map(json.loads, hosts.run(HOST, ["head", "-n", "200", LOG]).stdout.splitlines())
    return {each["auditID"] + each["stage"] for each in lines if each["stageTimestamp"] < until}
