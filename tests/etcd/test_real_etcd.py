"""The flags tried on the real program: three members of main and one of events, on loopback."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster.spec import Cluster
from etcd.flags import flags, pki_dir
from etcd.members import http_port, members, metrics_port, settings
from etcd.render import secrets
from network.addresses import plan
from tools import build as programs
from tools.golang import GoMissing


def _programs() -> tuple[Path, Path] | None:
    """etcd and etcdctl: beside MENAGERIE_ETCD, or those that were built into the cache."""
    if chosen := os.environ.get("MENAGERIE_ETCD"):
        return Path(chosen), Path(chosen).with_name("etcdctl")
    try:
        built = {str(state["program"]): Path(str(state["path"])) for state in programs.states() if state["built"]}
        return built["etcd"], built["etcdctl"]
    except (KeyError, GoMissing):
        return None


PROGRAMS = _programs()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="no etcd in the cache: build it, or set MENAGERIE_ETCD")


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def _signed(name: str, signer: Authority | None, usages: tuple[str, ...] = (), addresses: tuple[str, ...] = ()):
    """A certificate and its key; an authority of its own when there is no signer."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    )
    if usages:
        oids = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}
        builder = builder.add_extension(x509.ExtendedKeyUsage([oids[usage] for usage in usages]), critical=False)
    if addresses:
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer.key if signer else key, hashes.SHA256()), key


def _authority(name: str) -> Authority:
    return Authority(*_signed(name, None))


def _pems(name: str, signer: Authority, usages: tuple[str, ...], addresses: tuple[str, ...] = ()) -> tuple[str, str]:
    certificate, key = _signed(name, signer, usages, addresses)
    plain = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return certificate.public_bytes(pem).decode(), key.private_bytes(pem, pkcs8, plain).decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Fleet:
    """The members' processes, each with a folder that stands for its host."""

    cluster: Cluster
    folder: Path
    authorities: dict[str, Authority]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)

    def command(self, role: str, name: str) -> list[str]:
        """The member's own flags. Only what one host can have once is moved: files and 127.0.0.1."""
        self.metrics[name] = _free_port()
        moves = {
            f"https://127.0.0.1:{settings(self.cluster, role).client_port}": f"https://127.0.0.1:{_free_port()}",
            f"http://127.0.0.1:{metrics_port(self.cluster, role)}": f"http://127.0.0.1:{self.metrics[name]}",
            f"https://127.0.0.1:{http_port(self.cluster, role)}": f"https://127.0.0.1:{_free_port()}",
            pki_dir(role): f"{self.folder}/{name}{pki_dir(role)}",
            "--data-dir=": f"--data-dir={self.folder}/{name}",
        }
        moved = flags(self.cluster, role, name, plan(self.cluster))
        for old, new in moves.items():
            moved = [flag.replace(old, new) for flag in moved]
        return [str(PROGRAMS[0]), *moved]

    def start(self, role: str, name: str) -> None:
        data = self.folder / name / "var/lib/etcd" / role
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
            self.running[name] = subprocess.Popen(self.command(role, name), stdout=log, stderr=log, env=clean)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def etcdctl(self, role: str, client: str | None, *words: str, members_: slice = slice(None)):
        urls = [each.client_url for each in members(self.cluster, role, plan(self.cluster))][members_]
        command = [str(PROGRAMS[1]), f"--endpoints={','.join(urls)}", "--command-timeout=2s", "--dial-timeout=1s"]
        command.append(f"--cacert={self.folder}/{role}-ca.crt")
        if client:
            command += [f"--cert={self.folder}/{client}.crt", f"--key={self.folder}/{client}.key"]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False)

    def wait_until_healthy(self, role: str) -> None:
        def healthy() -> bool:
            return self.etcdctl(role, f"client-of-{role}", "endpoint", "health").returncode == 0

        _until(healthy, f"etcd {role} healthy; the end of a log: {self.log(f'etcd-{role}-1')[-2000:]}")


def _issue(fleet: Fleet) -> None:
    """Writes every file that the members' secret references name, bundles in their order."""
    store: dict[str, str] = {f"etcd-{role}-ca.crt": made.pem for role, made in fleet.authorities.items()}
    for role, authority in fleet.authorities.items():
        (fleet.folder / f"{role}-ca.crt").write_text(authority.pem)
        client = _pems(f"client-of-{role}", authority, ("client",))
        for kind, text in zip(("crt", "key"), client, strict=True):
            (fleet.folder / f"client-of-{role}.{kind}").write_text(text)
        for member in members(fleet.cluster, role, plan(fleet.cluster)):
            addresses = (str(member.address), "127.0.0.1")
            for kind, usages in (("server", ("server",)), ("peer", ("server", "client"))):
                pair = _pems(member.name, authority, usages, addresses)
                store[f"{member.name}-{kind}.crt"], store[f"{member.name}-{kind}.key"] = pair
            for secret in secrets(role, member.name):
                path = fleet.folder / member.name / secret.path.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text((path.read_text() if path.exists() else "") + store[secret.name])


def _until(true: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def fleet(build, tmp_path_factory) -> Iterator[Fleet]:
    # Every address of 127.0.0.0/8 is this machine's; the process id keeps parallel runs apart.
    pid = os.getpid()
    nodes = f"127.{100 + pid // 256 % 100}.{pid % 256}.0/24"
    cluster = build({"network": {"nodes": nodes}, "etcd": {"events": {"members": 1, "quota": "2GiB"}}})
    fleet = Fleet(cluster, tmp_path_factory.mktemp("etcd"), {"main": _authority("main"), "events": _authority("ev")})
    _issue(fleet)
    try:
        for role in ("main", "events"):
            for member in members(cluster, role, plan(cluster)):
                fleet.start(role, member.name)
        for role in ("main", "events"):
            fleet.wait_until_healthy(role)
        yield fleet
    finally:
        for name in list(fleet.running):
            fleet.kill(name)


def _metric(fleet: Fleet, name: str, metric: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{fleet.metrics[name]}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{metric} "))


def test_three_members_form_one_etcd_that_takes_writes(fleet):
    assert fleet.etcdctl("main", "client-of-main", "put", "/a", "1").stdout == "OK\n"
    listed = json.loads(fleet.etcdctl("main", "client-of-main", "member", "list", "-w", "json").stdout)
    assert sorted(member["name"] for member in listed["members"]) == ["etcd-main-1", "etcd-main-2", "etcd-main-3"]


def test_the_quota_of_the_spec_is_in_force(fleet):
    assert _metric(fleet, "etcd-main-1", "etcd_server_quota_backend_bytes") == fleet.cluster.spec.etcd.main.quota
    assert _metric(fleet, "etcd-events-1", "etcd_server_quota_backend_bytes") == 2 * 2**30


def test_the_program_finds_nothing_to_warn_of_in_its_flags(fleet):
    lines = [json.loads(line) for line in fleet.log("etcd-main-1").splitlines()]
    about_flags = [line["msg"] for line in lines if line["level"] == "warn" and line["caller"].startswith("embed/")]
    assert about_flags == []


def test_a_client_without_a_certificate_is_refused(fleet):
    assert fleet.etcdctl("main", None, "get", "/a").returncode != 0


def test_one_client_certificate_of_main_opens_both_and_one_of_events_opens_events_alone(fleet):
    opened = {
        (client, role): fleet.etcdctl(role, f"client-of-{client}", "get", "/a").returncode == 0
        for client in ("main", "events")
        for role in ("main", "events")
    }
    assert opened == {
        ("main", "main"): True,
        ("main", "events"): True,
        ("events", "events"): True,
        ("events", "main"): False,
    }


def test_a_members_peer_certificate_serves_etcdctl_on_its_host(fleet):
    for kind in ("crt", "key"):
        shutil.copy(fleet.folder / "etcd-main-1" / f"etc/etcd/main/pki/peer.{kind}", fleet.folder / f"own.{kind}")
    assert fleet.etcdctl("main", "own", "endpoint", "health").returncode == 0


def test_with_one_member_killed_writes_go_on_and_its_disk_brings_it_back(fleet):
    def members_now():
        return json.loads(fleet.etcdctl("main", "client-of-main", "member", "list", "-w", "json").stdout)["members"]

    before = members_now()
    fleet.kill("etcd-main-3")
    survivors = slice(0, 2)
    _until(
        lambda: fleet.etcdctl("main", "client-of-main", "put", "/b", "2", members_=survivors).returncode == 0,
        "a write with two of three members",
    )
    fleet.start("main", "etcd-main-3")
    back = slice(2, 3)
    _until(
        lambda: fleet.etcdctl("main", "client-of-main", "get", "/b", members_=back).stdout == "/b\n2\n",
        "the third member back with the write it missed",
    )
    assert members_now() == before
    assert "starting initial corruption check" in fleet.log("etcd-main-3")


def test_a_member_that_lost_its_disk_refuses_to_start_as_if_it_were_new(fleet):
    fleet.kill("etcd-main-2")
    data = fleet.folder / "etcd-main-2" / "var/lib/etcd/main"
    kept = data.with_name("kept")
    data.rename(kept)
    fleet.start("main", "etcd-main-2")
    assert fleet.running["etcd-main-2"].wait(timeout=30) != 0
    assert "has already been bootstrapped" in fleet.log("etcd-main-2")
    shutil.rmtree(data)
    kept.rename(data)
    fleet.start("main", "etcd-main-2")
    fleet.wait_until_healthy("main")
