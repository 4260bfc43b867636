"""What must be refused, tried with real programs: an etcd, an API server, and connections from this machine."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from clients.remote.executor import Done
from cluster.audit.evidence import Attempt
from cluster.outputs import EtcdOutput, HostOutput
from cluster.spec import Cluster
from operations import audit, trials
from operations.passphrase import empty_passphrase, opens
from operations.trials import Try
from stacks.certificates import Request, Signed, issue, new_authority
from tests.control_plane.real_api import RealApi, running
from tests.operations.conftest import FakeAccess, outputs
from tests.operations.real_cluster import Ended
from tests.programs import program
from tests.waiting import until

HERE = "127.0.0.1"
CA = new_authority("etcd-main")
OPERATOR = issue(CA, Request("menagerie-operator", usages=("client",)))
AUTHENTICATION = Path(__file__).parents[2] / "components" / "control_plane" / "files" / "authentication.yaml"


def free(count: int) -> list[int]:
    sockets = [socket.create_server((HERE, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def etcd(folder: Path, *, asks: bool = True) -> Iterator[EtcdOutput]:
    """Run a member with TLS. asks: whether clients need certificates from its authority."""
    client, peer = free(2)
    served = issue(CA, Request("etcd-main-1", dns_names=("localhost",), addresses=(HERE,)))
    for name, text in (("ca.crt", CA.certificate), ("crt", served.certificate), ("key", served.private_key)):
        (folder / name).write_text(text)
    command = [
        program("etcd"), f"--data-dir={folder / 'data'}", f"--listen-client-urls=https://{HERE}:{client}",
        f"--advertise-client-urls=https://{HERE}:{client}", f"--listen-peer-urls=http://{HERE}:{peer}",
        f"--initial-advertise-peer-urls=http://{HERE}:{peer}", f"--initial-cluster=default=http://{HERE}:{peer}",
        f"--cert-file={folder / 'crt'}", f"--key-file={folder / 'key'}",
        "--unsafe-no-fsync", *(("--client-cert-auth=true", f"--trusted-ca-file={folder / 'ca.crt'}") if asks else ()),
    ]  # fmt: skip
    output = EtcdOutput(members=(HostOutput(name="m-1", address=HERE),), client_port=client, ca_pem=CA.certificate)
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            until(lambda: answers(client), seconds=30)
            yield output
        finally:
            process.kill()


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HERE, port), 1):
        return True
    return False


def access(output: EtcdOutput, operator: Signed = OPERATOR) -> FakeAccess:
    only = outputs().model_copy(update={"etcds": {"main": output}})
    return FakeAccess(only, etcd_certificate=operator.certificate, etcd_key=operator.private_key)


def test_an_etcd_that_requires_its_certificates_refuses_all_others(tmp_path: Path) -> None:
    with etcd(tmp_path) as output:
        tried = list(trials.strangers_at_etcds(access(output)))  # type: ignore[arg-type]
    assert [(each.ok, each.outcome) for each in tried] == [(True, "refused")] * 2, tried


def test_an_etcd_that_requires_no_certificate_is_found(tmp_path: Path) -> None:
    with etcd(tmp_path, asks=False) as output:
        tried = list(trials.strangers_at_etcds(access(output)))  # type: ignore[arg-type]
    assert [(each.ok, each.outcome) for each in tried] == [(False, "accepted")] * 2, tried


def test_a_member_that_refuses_the_operator_or_is_down_proves_nothing(tmp_path: Path) -> None:
    somebody = issue(new_authority("somebody"), Request("menagerie-operator"))
    with etcd(tmp_path) as output:
        (refused,) = trials.strangers_at_etcds(access(output, somebody))  # type: ignore[arg-type]
    (down,) = trials.strangers_at_etcds(access(output))  # type: ignore[arg-type]
    assert (refused.ok, "not accepted: refused" in refused.outcome) == (None, True)
    assert (down.ok, "no answer: Connection refused" in down.outcome) == (None, True)


def test_a_secret_that_is_not_ciphertext_is_found(tmp_path: Path) -> None:
    with etcd(tmp_path) as output:
        for name, value in (("a", "k8s:enc:secretbox:v1:key-1:\x01\x02"), ("b", '{"kind":"Secret"}')):
            put(output, f"/registry/secrets/kube-system/{name}", value)
        keys = ["kube-system/a", "kube-system/b", "kube-system/gone"]
        tried = list(trials.secrets_at_rest(access(output), keys))  # type: ignore[arg-type]
        (none,) = trials.secrets_at_rest(access(output), [])  # type: ignore[arg-type]
    assert tried == [
        Attempt("M.5", "Secret kube-system/a", True, "starts with k8s:enc:secretbox"),
        Attempt("M.5", "Secret kube-system/b", False, "is not encrypted"),
    ]
    assert none.ok is None


def put(output: EtcdOutput, key: str, value: str) -> None:
    etcd_client = trials.EtcdClient(access(output), "main")  # type: ignore[arg-type]
    etcd_client._answer("put", key, value)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealApi, Path]]:
    """An API server that serves strangers only on health paths, with our configuration file."""
    folder = tmp_path_factory.mktemp("limited")
    with running(program, folder, "--authentication-config", str(AUTHENTICATION)) as ready:
        yield ready, folder


@dataclass
class OfApi(FakeAccess):
    """Return access to this test's API server."""

    @property
    def server(self) -> str:
        return self.url


def strangers(api: RealApi, folder: Path) -> dict[str, bool | None]:
    ca = (folder / "certificates" / "apiserver.crt").read_text()
    reached = OfApi(outputs().model_copy(update={"ca_pem": ca}), f"https://{HERE}:{api.port}")
    return {each.subject: each.ok for each in trials.strangers_at_the_api(reached)}  # type: ignore[arg-type]


def test_strangers_get_responses_only_on_health_paths(limited: tuple[RealApi, Path]) -> None:
    verdicts = strangers(*limited)
    assert len(verdicts) == len(trials.ANSWERED) + len(trials.REFUSED)
    assert set(verdicts.values()) == {True}, verdicts


def test_an_api_that_serves_strangers_is_found_and_a_silent_one_proves_nothing(tmp_path: Path) -> None:
    with running(program, tmp_path) as api:
        open_ = strangers(api, tmp_path)
    silent = strangers(api, tmp_path)
    assert {path for path, ok in open_.items() if ok is False} == {f"GET {path}" for path in trials.REFUSED}
    assert set(silent.values()) == {None}


@dataclass
class Here:
    """An executor that uses this machine for every host. asked: what ran."""

    code: int = 0

    def start(self, host: str, words: Sequence[str]) -> Ended:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return Ended(Done(self.code or done.returncode, done.stdout + done.stderr))


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server((HERE, 0)) as server:
        yield server.getsockname()[1]


def from_here(tries: Sequence[Try], endpoint: int, executor: Here | None = None) -> list[bool | None]:
    attempts = trials.from_site(executor or Here(), "worker-1", f"{HERE}:{endpoint}", tries)
    return [each.ok for each in attempts]


def test_a_port_that_should_be_closed_is_found_open(listening: int) -> None:
    (closed,) = free(1)
    tries = [Try("M.8", "etcd-main-1", HERE, listening), Try("M.8", "etcd-main-1", HERE, closed)]
    assert from_here(tries, listening) == [False, True]


def test_a_worker_that_does_not_even_reach_the_load_balancer_proves_nothing(listening: int) -> None:
    (closed,) = free(1)
    assert from_here([Try("M.8", "etcd-main-1", HERE, closed)], closed) == [None]
    assert from_here([Try("M.8", "etcd-main-1", HERE, closed)], listening, Here(code=255)) == [None]


def test_a_server_that_refuses_strangers_is_distinguished_from_one_that_does_not(
    limited: tuple[RealApi, Path], listening: int
) -> None:
    """For a kubelet, the response is the same."""
    api, _ = limited
    (closed,) = free(1)
    asked = Try("M.10", "worker-1", HERE, api.port, frozenset({"401"}), "/pods")
    answered = replace(asked, path="/livez")
    assert from_here([asked, answered, replace(asked, port=closed)], listening) == [True, False, None]


def test_attempts_cover_every_member_and_api_server_and_some_nodes(lab: Cluster) -> None:
    reached = FakeAccess(outputs())
    tries = trials.tries_of(lab, reached, {"api-1": ["10.77.0.11"]}, {"worker-1": "10.78.1.11"})  # type: ignore[arg-type]
    etcds = {(each.target, each.port) for each in tries if each.control == "M.8"}
    assert {("etcd-main-1", 2379), ("etcd-main-3", 2380), ("etcd-events-2", 2381), ("etcd-events-2", 2382)} <= etcds
    assert len(etcds) == 18
    assert {each.port for each in tries if each.target == "api-1"} == set(trials.BEHIND_THE_BALANCER)
    assert {(each.port, each.path) for each in tries if each.target == "worker-1"} == {(10250, "/pods"), (10255, "")}


def at_services(build: Any, monkeypatch: pytest.MonkeyPatch, ssh: int, port: int, **node_ports: Any) -> list[Attempt]:
    """Try a worker that is this machine. ssh, port: ports that are open or closed."""
    changes = {"sites": {"onprem": {"ssh": {"port": ssh}}}, "network": {"node_ports": node_ports}}
    cluster = build(changes)
    host = cluster.hosts["workers"][0].model_copy(update={"address": IPv4Address(HERE)})
    monkeypatch.setattr(trials, "NODE_PORTS", range(port, port + 1))
    here = cluster.model_copy(update={"hosts": {"workers": (host, *cluster.hosts["workers"][1:])}})
    return list(trials.strangers_at_services(here, ()))


def test_without_workers_at_sites_nothing_is_tried_from_one_by_design(lab: Cluster) -> None:
    nowhere = lab.model_copy(update={"hosts": {}})
    tried = [*trials.strangers_at_services(nowhere, ()), *audit._from_sites(nowhere, *(None,) * 3, ())]  # type: ignore[arg-type]
    assert {each.control: (each.ok, each.expected) for each in tried} == dict.fromkeys(
        ("M.8", "M.9", "M.10", "M.27"), (None, True)
    )


def test_a_service_port_that_this_machine_can_reach_is_found_even_without_a_service(
    build: Any, monkeypatch: pytest.MonkeyPatch, listening: int
) -> None:
    (closed,) = free(1)
    for port, outcome in ((listening, "open"), (closed, "refused")):
        (attempt,) = at_services(build, monkeypatch, listening, port)
        assert (attempt.control, attempt.ok, attempt.outcome) == ("M.27", False, outcome)


def test_a_worker_that_is_unreachable_or_allows_this_machine_proves_nothing_about_service_ports(
    build: Any, monkeypatch: pytest.MonkeyPatch, listening: int
) -> None:
    (closed,) = free(1)
    (attempt,) = at_services(build, monkeypatch, closed, listening)
    assert (attempt.ok, attempt.outcome) == (None, f"not reachable from here: port {closed} is refused")
    (attempt,) = at_services(build, monkeypatch, listening, listening, outside=["127.0.0.0/8"])
    assert (attempt.ok, attempt.outcome) == (None, "this machine is in network.node_ports.outside")


def test_a_service_port_that_a_firewall_drops_passes(
    build: Any, monkeypatch: pytest.MonkeyPatch, listening: int
) -> None:
    monkeypatch.setattr(trials, "outcome", lambda asked: "open" if asked["port"] == listening else "silent")
    (attempt,) = at_services(build, monkeypatch, listening, 30000)
    assert attempt.ok is True


@pytest.mark.parametrize(
    ("value", "secret", "ok"),
    [("-----BEGIN PRIVATE KEY-----", (), False), ("-----BEGIN PRIVATE KEY-----", ("some",), True), ("x", (), None)],
)
def test_an_output_with_a_key_is_marked_secret(value: str, secret: Sequence[str], ok: bool | None) -> None:
    attempts = list(trials.marked_secret({"some": value, "outputs": "{}"}, frozenset(secret)))
    assert [each.ok for each in attempts] == ([] if ok is None else [ok])


def test_an_output_named_as_a_key_counts_as_one() -> None:
    (attempt,) = trials.marked_secret({"bucket_key": json.dumps({})}, frozenset())
    assert attempt.ok is False


# Written by the engine (3.259) for a new stack: with an empty passphrase, and with "neues wort".
EMPTY = "v1:uH9Y2FJHnYs=:v1:+QpL91Rqyawo3UJf:t8wAjq9fABIgFjJjBwUo6yy0LRM1LQ=="
GOOD = "v1:ND0nlwd9+eo=:v1:WLfQE/Ob4+Jnbs5/:gaCjzZEBSDFCe/fahBQE3svD8jtL0g=="


@pytest.mark.parametrize(
    ("provider", "ok"),
    [
        ({"type": "passphrase", "state": {"salt": EMPTY}}, False),
        ({"type": "passphrase", "state": {"salt": GOOD}}, True),
        ({"type": "passphrase", "state": {"salt": "v2:x"}}, None),
        ({"type": "cloud", "state": {"url": "awskms://a", "encryptedkey": "b"}}, True),
        ({}, None),
    ],
)
def test_a_state_that_an_empty_passphrase_opens_is_found(provider: dict[str, object], ok: bool | None) -> None:
    (attempt,) = empty_passphrase(provider)
    assert (attempt.control, attempt.ok) == ("M.26", ok)


def test_a_state_s_own_passphrase_opens_it() -> None:
    assert opens(GOOD, "neues wort")
