"""What hosts of the cloud side are given: a short user data, and a payload in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.spec import Cluster
from lab.plan import STORE_URL
from network.addresses import AddressPlan, plan
from stacks.lab.provider import store_policy
from stacks.lab.store import LabStore
from stacks.payloads import payloads
from userdata import Payload, render

SOURCE = ArtefactSource("http://mirror", {artefact.source: "ab" * 32 for artefact in catalogue().values()})
USER_DATA_BYTES = 12 * 1024
"""AWS takes 16 KiB; the rest is for the clouds' store programs, which have to sign their requests."""
KEY_VAULT_BYTES = 25_000
"""Azure's Key Vault takes 25 kB a secret, the least of the three clouds."""

LARGE = {
    "control_plane": {"api_servers": 9},
    "etcd": {"main": {"members": 7}, "events": {"members": 7}},
    "network": {"nodes": "10.32.0.0/16", "domain": "a-cluster-with-a-long-name.research.example.org"},
    "sites": {"onprem": {"racks": {f"r{n}": f"10.96.{n}.0/24" for n in range(256)}}},
}


@pytest.fixture(params=["lab", "large", "shared"])
def cluster(request: pytest.FixtureRequest, build: Callable[..., Cluster]) -> Cluster:
    changes: Mapping[str, object] = {"lab": {}, "large": LARGE, "shared": {"etcd": {"events": {"hosts": "main"}}}}
    return build(changes[request.param])


def made(cluster: Cluster) -> tuple[AddressPlan, dict[str, Payload]]:
    addresses = plan(cluster)
    return addresses, payloads(cluster, addresses, SOURCE)


def test_every_host_has_a_payload_and_api_servers_share_one(cluster: Cluster) -> None:
    addresses, by_host = made(cluster)
    assert set(by_host) == {host.name for host in addresses.hosts()}
    api_servers = {host.name for host in addresses.api_servers}
    assert len({by_host[name].name for name in api_servers}) == 1
    assert len({payload.name for payload in by_host.values()}) == len(by_host) - len(api_servers) + 1


def test_user_data_fits_into_every_cloud_with_room_to_spare(cluster: Cluster) -> None:
    _, by_host = made(cluster)
    sizes = {name: len(render(payload, LabStore(STORE_URL), name).encode()) for name, payload in by_host.items()}
    assert {name: size for name, size in sizes.items() if size > USER_DATA_BYTES} == {}


def test_a_payload_fits_into_every_cloud_s_secret_store(cluster: Cluster) -> None:
    _, by_host = made(cluster)
    sizes = {name: len(payload.packed()) for name, payload in by_host.items()}
    assert {name: size for name, size in sizes.items() if size > KEY_VAULT_BYTES} == {}


def test_a_change_of_one_etcd_is_another_payload_for_its_members_and_for_no_other_member(
    build: Callable[..., Cluster],
) -> None:
    before, after = made(build())[1], made(build({"etcd": {"events": {"quota": "2GiB"}}}))[1]
    assert {name for name in before if before[name] != after[name]} == {f"etcd-events-{n}" for n in (1, 2, 3)}


class Keys:
    """Stands in for `stacks.pki.Pki`."""

    def for_api_server(self) -> dict[str, str]:
        return {"kubernetes-ca.key": "KEY"}

    def for_member(self, name: str) -> dict[str, str]:
        return {f"{name}-server.key": "KEY"}


def test_a_host_may_read_its_own_payload_and_keys_and_no_other(cluster: Cluster) -> None:
    addresses, by_host = made(cluster)
    policy = store_policy(cluster, addresses, Keys(), by_host)
    for host in addresses.hosts():
        own = policy[str(host.address)]
        assert own[by_host[host.name].name] == by_host[host.name].packed()
        assert [name for name in own if name.startswith("payload-")] == [by_host[host.name].name]
        names = {secret["name"] for secret in json.loads(by_host[host.name].text)["secrets"]}
        assert {name for name in own if name.endswith("-server.key")} == {n for n in names if n.endswith("-server.key")}
        assert ("kubernetes-ca.key" in own) == (host in addresses.api_servers)
