"""What hosts in the region get: short user data, and a payload in the store."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from unittest.mock import MagicMock

import pulumi
import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import JOIN_TOKEN, PAYLOAD_DIGEST, STORAGE_CLASSES
from cluster.spec import Cloud, Cluster
from components.control_plane import audit_log
from components.control_plane import render as control_plane_render
from components.userdata import Payload, render
from components.userdata.payload import unpacked
from etcd import backups
from etcd.render import data_disk
from network.addresses import ROLES, AddressPlan, plan
from sandbox.lab.plan import STORE_URL
from stacks import certificates
from stacks.backups import hosts_with_backups
from stacks.lab.provider import store_policy
from stacks.lab.store import LabStore
from stacks.lab.workers import workers_in_region
from stacks.payloads import (
    API_SERVERS,
    WORKERS,
    of_etcds,
    payloads,
    readable,
    reader,
    secrets,
    stored,
    worker_payloads,
)
from stacks.pki import Pki
from tests.control_plane import csi_support

SOURCE = ArtefactSource("http://mirror", {artefact.source: "ab" * 32 for artefact in catalogue().values()})
USER_DATA_BYTES = 12 * 1024
"""AWS permits 16 KiB; the rest is for the clouds' store programs, which have to sign their requests."""
KEY_VAULT_BYTES = 25_000
"""Azure's Key Vault permits 25 kB per secret, the least of the three clouds. Payloads are in the custom data there."""
PAYLOAD_BYTES = 65_535 - 15 * 1024
"""Azure's limit for custom data, the lowest of the clouds for a payload, minus room for programs and growth.
`tests.control_plane.test_payload_room` has the largest cluster and the exact limits."""

LARGE = {
    "control_plane": {"api_servers": 9},
    "etcd": {"main": {"members": 7}, "events": {"members": 7}},
    "network": {"nodes": "10.32.0.0/16", "domain": "a-cluster-with-a-long-name.research.example.org"},
    "sites": {"onprem": {"racks": {f"r{n}": f"10.96.{n}.0/24" for n in range(256)}}},
}


UNITS = {"etcd-main.service", "etcd-events.service"}
IN_REGION = {**LARGE, "pools": {"cpu": {"machine": "large", "max": 5}}}


@pytest.fixture(params=["lab", "large", "shared", "in region"])
def cluster(request: pytest.FixtureRequest, build: Callable[..., Cluster]) -> Cluster:
    shared = {"etcd": {"events": {"hosts": "main"}}}
    changes: Mapping[str, object] = {"lab": {}, "large": LARGE, "shared": shared, "in region": IN_REGION}
    return build(changes[request.param])


def planned(cluster: Cluster) -> tuple[AddressPlan, dict[str, Payload]]:
    addresses = plan(cluster)
    return addresses, payloads(cluster, addresses, SOURCE)


def test_every_reader_has_a_different_payload(cluster: Cluster) -> None:
    addresses, by_reader = planned(cluster)
    assert set(by_reader) == {reader(addresses, host.name) for host in addresses.hosts()}
    assert len({payload.name for payload in by_reader.values()}) == len(by_reader)
    assert {reader(addresses, host.name) for host in addresses.api_servers} == {API_SERVERS}


def test_user_data_fits_every_cloud_with_room_to_spare(cluster: Cluster) -> None:
    _, by_reader = planned(cluster)
    sizes = {name: len(render(payload, LabStore(STORE_URL), name).encode()) for name, payload in by_reader.items()}
    assert {name: size for name, size in sizes.items() if size > USER_DATA_BYTES} == {}


def test_a_payload_fits_the_storage_of_every_cloud(cluster: Cluster) -> None:
    _, by_reader = planned(cluster)
    sizes = {name: len(payload.packed()) for name, payload in by_reader.items()}
    assert {name: size for name, size in sizes.items() if size > PAYLOAD_BYTES} == {}


def test_a_change_of_one_etcd_changes_only_its_members_payloads(
    build: Callable[..., Cluster],
) -> None:
    before, after = planned(build())[1], planned(build({"etcd": {"events": {"quota": "2GiB"}}}))[1]
    assert {name for name in before if before[name] != after[name]} == {f"etcd-events-{n}" for n in (1, 2, 3)}


class Keys:
    """Stands in for `stacks.pki.Pki`."""

    def for_api_server(self) -> dict[str, str]:
        return {"kubernetes-ca.key": "KEY", "kubernetes-ca.crt": "CA"}

    def for_member(self, name: str) -> dict[str, str]:
        return {f"{name}-server.key": "KEY"}

    def for_etcd_host(self, host: str) -> dict[str, str]:
        return {"kubernetes-ca.crt": "CA", f"{host}-metrics-relay.key": "KEY"}

    def for_worker(self) -> dict[str, str]:
        return {"kubernetes-ca.crt": "CA", "kubelet-serving-ca.crt": "SERVING"}


def kept(cluster: Cluster, addresses: AddressPlan) -> dict[str, dict[str, str]]:
    """Stands in for `stacks.backups.secrets`."""
    by_host = hosts_with_backups(cluster, addresses)
    return {host: {backups.secret_name(role): "PASSWORD" for role in roles} for host, roles in by_host.items()}


def test_a_host_reads_only_the_backup_secrets_of_its_own_etcds(cluster: Cluster) -> None:
    addresses, by_reader = planned(cluster)
    policy = store_policy(cluster, addresses, Keys(), by_reader, kept(cluster, addresses))
    for host in addresses.hosts():
        readable_names = {name for name in policy[str(host.address)]["read"] if name.endswith("-backups.json")}
        roles = {role for role in ROLES if host in addresses.etcd[role]}
        assert readable_names == {f"etcd-{role}-backups.json" for role in roles}


def test_etcd_hosts_read_the_digest_of_their_payload_and_operators_can_push_it(cluster: Cluster) -> None:
    addresses, by_reader = planned(cluster)
    own = readable(cluster, addresses, Keys(), by_reader, kept(cluster, addresses))
    texts = json.loads(unpacked(of_etcds(by_reader)))
    assert set(texts) == set(by_reader) - {API_SERVERS}
    digests = {name: values.get(PAYLOAD_DIGEST) for name, values in own.items()}
    assert digests == {API_SERVERS: None, **{name: Payload(text).sha256 for name, text in texts.items()}}
    assert all(Payload(text) == by_reader[name] for name, text in texts.items())
    assert len(of_etcds(by_reader)) < 3 * PAYLOAD_BYTES


def test_etcd_hosts_know_the_programs_of_each_unit(cluster: Cluster) -> None:
    _, by_reader = planned(cluster)
    for name, payload in by_reader.items():
        config = json.loads(payload.text)
        placed = {entry["path"] for entry in config["files"]} | {
            target for entry in config["downloads"] for _, target in entry["members"]
        }
        programs = {entry["unit"]: set(entry["paths"]) for entry in config["refresh"]["programs"]}
        assert bool(programs) == (name != API_SERVERS) == ("/usr/local/sbin/menagerie-apply" in placed)
        for unit, paths in programs.items():
            assert unit in config["start"]
            assert paths <= placed
        if programs:
            # The agent restarts last, because an operator waits for its answer.
            assert config["start"][0] == "menagerie-agent.service"
            always = {"menagerie-agent.service", "metrics-relay.service"}
            assert set(programs) == always | {u for u in config["start"] if u in UNITS}


def test_a_host_may_read_only_its_own_payload_and_keys(cluster: Cluster) -> None:
    addresses, by_reader = planned(cluster)
    policy = store_policy(cluster, addresses, Keys(), by_reader, kept(cluster, addresses))
    for host in addresses.hosts():
        payload = by_reader[reader(addresses, host.name)]
        own = policy[str(host.address)]["read"]
        assert policy[str(host.address)]["write"] == []
        assert own[payload.name] == payload.packed()
        assert [name for name in own if name.startswith("payload-")] == [payload.name]
        names = {secret["name"] for secret in json.loads(payload.text)["secrets"]}
        assert {name for name in own if name.startswith("etcd-")} == {
            name
            for name in names
            if re.fullmatch(r"etcd-\w+-\d+-(server|metrics-relay)\.key|etcd-\w+-backups\.json", name)
        }
        assert ("kubernetes-ca.key" in own) == (host in addresses.api_servers)


def test_in_a_lab_api_servers_write_the_join_token_and_workers_in_the_region_read_it(
    build: Callable[..., Cluster],
) -> None:
    cluster = build(
        {"pools": {"cpu": {"machine": "large", "min": 1, "max": 1}, "gpu": {"machine": "large", "min": 2, "max": 2}}}
    )
    addresses, by_reader = planned(cluster)
    pools = worker_payloads(cluster, addresses, SOURCE)
    by_worker = {worker.host: pools[worker.pool] for worker in workers_in_region(cluster)}
    assert [host.name for host in by_worker] == ["lab-cpu-1", "lab-gpu-1", "lab-gpu-2"]
    policy = store_policy(cluster, addresses, Keys(), by_reader, {}, by_worker)
    assert len(policy) == len(addresses.hosts()) + len(by_worker)
    for worker, payload in by_worker.items():
        rights = policy[str(worker.address)]
        assert set(rights["read"]) == {
            payload.name,
            "kubernetes-ca.crt",
            "kubelet-serving-ca.crt",
            JOIN_TOKEN,
        }
        assert rights["write"] == []
    for host in addresses.hosts():
        rights = policy[str(host.address)]
        assert rights["write"] == ([JOIN_TOKEN] if host in addresses.api_servers else [])
        assert JOIN_TOKEN not in rights["read"]


Opened = dict[str, dict[str, str]]


def opened(
    cluster: Cluster, addresses: AddressPlan, by_reader: Mapping[str, Payload], *by_pool: Mapping[str, Payload]
) -> Opened:
    """Return the result of `stored` with the text of every bundle, which must be a secret."""

    async def read() -> Opened:
        by_reader_: Opened = {}
        for own, values in stored(cluster, addresses, Keys(), by_reader, kept(cluster, addresses), *by_pool).items():
            by_reader_[own] = {}
            for name, value in values.items():
                if isinstance(value, pulumi.Output):
                    assert await value.is_secret()
                    value = await value.future()
                by_reader_[own][name] = str(value)
        return by_reader_

    return asyncio.run(read())


@pytest.fixture
def in_region(build: Callable[..., Cluster]) -> Cluster:
    pools = {"cpu": {"machine": "large", "max": 5}, "gpu": {"machine": "large", "max": 2, "labels": {"a": "b"}}}
    return build({"pools": pools})


def test_a_cloud_store_holds_a_payload_and_one_bundle_per_reader(cluster: Cluster) -> None:
    addresses, by_reader = planned(cluster)
    contents = opened(cluster, addresses, by_reader)
    assert set(contents) == set(by_reader)
    expected = readable(cluster, addresses, Keys(), by_reader, kept(cluster, addresses))
    for name, values in contents.items():
        assert set(values) == {by_reader[name].name, f"secrets-{name}"}
        assert values[by_reader[name].name] == by_reader[name].packed()
        own = set(json.loads(values[f"secrets-{name}"]))
        assert own == {key for key in expected[name] if "payload-" not in key}


def test_workers_of_all_pools_share_a_reader_and_each_pool_has_a_payload(in_region: Cluster) -> None:
    addresses, by_reader = planned(in_region)
    pools = worker_payloads(in_region, addresses, SOURCE)
    assert set(pools) == {"cpu", "gpu"}
    content = opened(in_region, addresses, by_reader, pools)[WORKERS]
    assert set(content) == {"secrets-workers", *(payload.name for payload in pools.values())}
    assert len(content) == 3
    assert json.loads(content["secrets-workers"]) == {
        "kubernetes-ca.crt": "CA",
        "kubelet-serving-ca.crt": "SERVING",
    }
    assert JOIN_TOKEN not in content


def test_without_workers_in_the_region_the_store_has_no_reader_for_them(build: Callable[..., Cluster]) -> None:
    cluster = build()
    addresses, by_reader = planned(cluster)
    assert worker_payloads(cluster, addresses, SOURCE) == {}
    assert WORKERS not in opened(cluster, addresses, by_reader, {})


def test_every_name_that_a_host_requests_is_in_its_bundle(in_region: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi.Output, "all", MagicMock())
    addresses, by_reader = planned(in_region)
    by_pool = worker_payloads(in_region, addresses, SOURCE)
    pki = MagicMock(etcd=dict.fromkeys(ROLES, MagicMock()))
    pki.service_account = pki.encryption = ((1, MagicMock()),)
    pki.members = {
        f"etcd-{role}-{n}": dict.fromkeys(("server", "peer"), MagicMock()) for role in ROLES for n in (1, 2, 3)
    }
    pki._etcd_authorities = lambda: Pki._etcd_authorities(pki)
    for name in ("for_api_server", "for_member", "for_etcd_host", "for_worker"):
        setattr(pki, name, partial(getattr(Pki, name), pki))
    additional = {**kept(in_region, addresses), API_SERVERS: {audit_log.SECRET: "SETTINGS"}}
    names = secrets(in_region, addresses, pki, additional)
    for own, payload in [*by_reader.items(), *((WORKERS, payload) for payload in by_pool.values())]:
        requested = {secret["name"] for secret in json.loads(payload.text)["secrets"]}
        assert set() < requested <= set(names[own])


def test_the_disk_of_an_etcd_is_only_in_its_members_payloads(build: Callable[..., Cluster]) -> None:
    cluster = build()
    by_reader = payloads(
        cluster, plan(cluster), SOURCE, lambda role: data_disk(cluster, role, (f"/dev/disk/by-id/google-{role}",))
    )
    disks = {name: [disk["label"] for disk in json.loads(payload.text)["disks"]] for name, payload in by_reader.items()}
    assert disks == {name: [name.rpartition("-")[0]] if name.startswith("etcd-") else [] for name in by_reader}


def test_a_bundle_fits_the_secret_store_of_every_cloud() -> None:
    """The largest is the API servers': authorities and certificates, all in a rotation, their keys, and storage classes."""
    authority = certificates.new_authority("kubelet-serving-2")
    leaf = certificates.issue(authority, certificates.Request("x" * 64, dns_names=("y" * 64,), addresses=("10.0.0.1",)))
    names = [secret.name for secret in control_plane_render.secrets(csi_support.cluster(Cloud.AZURE))]
    leaves = {"etcd-client.crt", "metrics-server.crt", "scraper.crt", "metrics-relay.crt"}
    assert leaves < set(names)
    bundle = {
        name: leaf.private_key
        if name.endswith(".key")
        else leaf.certificate
        if name in leaves
        else 2 * authority.certificate
        for name in names
    }
    bundle[STORAGE_CLASSES] = json.dumps(csi_support.applied(Cloud.AZURE)[-3:])
    assert len(json.dumps(bundle)) < KEY_VAULT_BYTES
