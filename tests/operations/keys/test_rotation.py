"""Keys of a running region are rotated without losing a secret, a token or a write."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from kubernetes import client

from clients.etcd_client import EtcdClient
from cluster.errors import FailedError, RefusedError
from cluster.key_rings import Ring, RingName
from network.addresses import plan
from operations.keys import encryption, rings
from operations.keys.certificates import of_hosts, of_stack, shown
from operations.keys.reports import read
from operations.keys.rotation import Rotated, Rotation
from stacks.certificates import Request, Signed, issue
from tests.operations.keys.region import Region
from tests.programs import program

pytestmark = pytest.mark.timeout(900)


class Cut(Exception):
    """The run ends here, as if it had been killed."""


def rotation(world: Region, name: Any, done: Callable[[str], None] = lambda _: None) -> Rotation:
    return Rotation(world.cluster.name, name, world, world.access, print, done, every_s=0.5, settled_s=5, spread_s=5)


def until_done(
    world: Region, name: Any, after: Callable[[str], None] = lambda _: None, only: str = ""
) -> tuple[list[str], Rotated]:
    """Run a rotation that is interrupted once in every state, or in one, and resumed. after: called once in every state."""
    states: list[str] = []

    def done(state: str) -> None:
        if state not in states:
            states.append(state)
            after(state)
            if only in ("", state):
                raise Cut

    while True:
        with suppress(Cut):
            return states, rotation(world, name, done).run()


@pytest.fixture
def core(world: Region) -> client.CoreV1Api:
    return client.CoreV1Api(world.access().api())


def named(world: Region, ring: RingName) -> str:
    """Return the common name of the current authority, which depends on other tests in the same region."""
    generation, first = rings.built(world.outputs())[ring].at_work, ring.removesuffix("-ca")
    return first if generation == 1 else f"{first}-{generation}"


def keys_in_use(world: Region) -> set[str]:
    return {encryption.key_of(each.value) for each in EtcdClient(world.access(), "main").scan(encryption.PREFIX)}


@pytest.mark.parametrize(
    "only",
    [
        pytest.param("", marks=pytest.mark.soak, id="every state"),
        pytest.param("encryption {new},{old}", id="one state"),
    ],
)
def test_a_run_that_is_interrupted_reencrypts_all_secrets(world: Region, core: client.CoreV1Api, only: str) -> None:
    old = rings.built(world.outputs())["encryption"].at_work
    new = old + 1
    for number in range(40):
        body = client.V1Secret(metadata=client.V1ObjectMeta(name=f"s-{old}-{number}"), string_data={"a": f"v {number}"})
        core.create_namespaced_secret("default", body)
    assert keys_in_use(world) == {f"key-{old}"}
    etcd = EtcdClient(world.access(), "main")
    assert [stored.key for stored in etcd.scan(encryption.PREFIX, page=7)] == [
        stored.key for stored in etcd.scan(encryption.PREFIX)
    ]
    used: dict[str, set[str]] = {}

    def look(state: str) -> None:
        metadata = client.V1ObjectMeta(generate_name="at-")
        core.create_namespaced_secret("default", client.V1Secret(metadata=metadata, string_data={"a": state}))
        used[state] = keys_in_use(world)

    before = world.restarts()
    states, rotated = until_done(world, "encryption", look, only.format(new=new, old=old))
    introduced, at_work, ended = f"encryption {old},{new}", f"encryption {new},{old}", f"encryption {new}"
    rewritten = f"secrets are encrypted with key-{new}"
    assert states == [introduced, at_work, rewritten, ended]
    assert used[introduced] == {f"key-{old}"}
    assert used[at_work] == {f"key-{old}", f"key-{new}"}
    assert used[rewritten] == keys_in_use(world) == {f"key-{new}"}
    assert rotated.ended == Ring((new,)) == rings.built(world.outputs())["encryption"]
    for number in range(40):
        data = core.read_namespaced_secret(f"s-{old}-{number}", "default").data["a"]
        assert base64.b64decode(data).decode() == f"v {number}"
    assert world.restarts() == before, "the API server reads these again by itself"
    assert "secret: " in (world.api.root / "etc/kubernetes/encryption-config.yaml").read_text()
    assert f"key-{old}" not in (world.api.root / "etc/kubernetes/encryption-config.yaml").read_text()


def test_a_key_that_still_encrypts_secrets_is_reported_with_their_number(world: Region) -> None:
    """No API server writes with key-9, so nothing will be encrypted with it."""
    access = world.access()
    etcd = EtcdClient(access, "main")
    count = len(list(etcd.scan(encryption.PREFIX)))
    with pytest.raises(
        FailedError,
        match=rf"key key-\d still encrypts {count} secrets, so it can't be removed.*\. Run: ",
    ):
        encryption.rewrite(etcd, access.api, "key-9", "lab", print)


def test_a_configuration_that_lags_behind_the_stack_is_refused(world: Region) -> None:
    now = rings.configured(world)["encryption"]
    rings.configure(world, "encryption", Ring((now.at_work - 1,)))
    built = f"was built with {now.at_work}, but .* configuration has {now.at_work - 1}"
    try:
        with pytest.raises(RefusedError, match=built):
            rotation(world, "encryption").run()
    finally:
        rings.configure(world, "encryption", now)


def token_of(core: client.CoreV1Api) -> str:
    asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    return str(core.create_namespaced_service_account_token("tester", "default", asked).status.token)


def is_known(world: Region, token: str) -> bool:
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    return bool(client.AuthenticationV1Api(world.access().api()).create_token_review(review).status.authenticated)


@pytest.mark.soak
def test_a_former_token_is_valid_until_it_expires_and_then_the_former_key_is_removed(
    world: Region, core: client.CoreV1Api
) -> None:
    core.create_namespaced_service_account(
        "default", client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="tester"))
    )
    former = token_of(core)
    endless = client.V1Secret(
        metadata=client.V1ObjectMeta(name="endless", annotations={"kubernetes.io/service-account.name": "tester"}),
        type="kubernetes.io/service-account-token",
    )
    core.create_namespaced_secret("default", endless)
    with pytest.raises(FailedError, match="default/endless"):
        rotation(world, "service-account").run()
    core.delete_namespaced_secret("endless", "default")
    new = token_of(core)
    assert (is_known(world, former), is_known(world, new)) == (True, True)
    assert former.split(".")[0] != new.split(".")[0], "the header names the key"
    with pytest.raises(FailedError, match="may be in use until"):
        rotation(world, "service-account").run()
    assert rings.built(world.outputs())["service-account"] == Ring((2, 1))
    world.configure("menagerie", "at-work-since-service-account", "2,1 2026-01-01T00:00:00+00:00")
    assert rotation(world, "service-account").run().ended == Ring((2,))
    assert (is_known(world, former), is_known(world, new)) == (False, True)


@contextmanager
def writing(world: Region) -> Iterator[list[str]]:
    """Write one key after another through any member. Yield the acknowledged keys."""
    pki = world.api.root / "etc/kubernetes/pki"
    urls = ",".join(f"https://{host.address}:2379" for host in world.members())
    words = [str(program("etcdctl")), f"--endpoints={urls}", f"--cacert={pki}/etcd/ca.crt"]
    words += [f"--cert={pki}/apiserver-etcd-client.crt", f"--key={pki}/apiserver-etcd-client.key"]
    acknowledged: list[str] = []
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.05):
            number += 1
            done = subprocess.run([*words, "put", f"/load/{number}", str(number)], capture_output=True, check=False)
            if done.returncode == 0:
                acknowledged.append(f"/load/{number}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield acknowledged
    finally:
        over.set()
        thread.join(60)


@pytest.mark.soak
def test_the_authority_of_etcd_changes_under_writes_member_by_member(world: Region) -> None:
    world.others_at_restart.clear()
    with writing(world) as acknowledged:
        states, rotated = until_done(world, "etcd-main-ca")
    assert states == ["etcd-main-ca 1,2", "etcd-main-ca 2,1", "etcd-main-ca 2"]
    assert rotated.ended == Ring((2,))
    kept = {stored.key for stored in EtcdClient(world.access(), "main").scan("/load/")}
    assert len(acknowledged) > 20
    assert set(acknowledged) <= kept
    assert sorted(name for name, _ in world.others_at_restart) == sorted(
        [f"etcd-main-{number}" for number in (1, 2, 3)] * 2
    ), "once to trust the new authority, once to trust no other"
    assert all(well for _, well in world.others_at_restart)
    issuers = {each.name: (each.issuer, each.wrong) for each in shown(world.access())}
    members = [f"{host.address}:2379" for host in plan(world.cluster).etcd["main"]]
    assert {issuers[name] for name in members} == {("etcd-main-2", "")}


def test_an_old_certificate_on_a_host_is_renewed_and_served_without_a_restart(world: Region) -> None:
    host = world.api
    pki = host.root / "etc/kubernetes/pki"
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    old = issue(authority, Request("kube-apiserver", addresses=(host.address,), days=0))
    before = host.units["kube-apiserver.service"].restarts
    world.refreshing = False
    try:
        (pki / "apiserver.key").write_text(old.private_key)
        (pki / "apiserver.crt").write_text(old.certificate)
        done = host.refresh()
    finally:
        world.refreshing = True
    assert done.returncode == 0, done.stderr
    assert (pki / "apiserver.crt").read_text() != old.certificate
    assert host.units["kube-apiserver.service"].restarts == before
    assert host.units["konnectivity-server.service"].restarts > 0, "it has a copy"
    lives = {each.name: each for each in of_hosts(read(world.access()))}
    life = lives[f"{host.name}:{pki}/apiserver.crt"]
    assert life.begins is not None
    assert life.ends is not None
    assert (life.ends - life.begins).days >= 364


def test_the_stack_s_certificates_are_listed_with_their_issuers(world: Region) -> None:
    issuers = {each.name: each.issuer for each in of_stack(world.engine.deployment())}
    assert issuers["etcd-main-1-server"] == named(world, "etcd-main-ca")
    assert issuers["etcd-events-1-peer"] == "etcd-events"
    assert issuers["operator"] == named(world, "kubernetes-ca")
