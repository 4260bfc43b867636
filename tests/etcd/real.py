"""Real etcds on loopback; each member has a folder in place of its host."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import shlex
import subprocess
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster.spec import Cluster
from etcd.flags import flags, pki_dir
from etcd.members import http_port, members, metrics_port, settings
from etcd.render import secrets
from network.addresses import plan
from tests import waiting
from tests.ports import at_ports, free_port
from tests.programs import PROGRAMS, needs
from tests.strict_certificates import strict

NEEDS_ETCD = needs(("etcd", "etcdctl"))


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def _signed(name: str, signer: Authority | None, usages: tuple[str, ...] = (), addresses: tuple[str, ...] = ()):
    """Return a certificate and its key; a self-signed authority without a signer."""
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
    signing = signer.key if signer else key
    builder = strict(builder, key.public_key(), signing.public_key(), is_authority=signer is None)
    return builder.sign(signing, hashes.SHA256()), key


def authority(name: str) -> Authority:
    return Authority(*_signed(name, None))


def pems(name: str, signer: Authority, usages: tuple[str, ...], addresses: tuple[str, ...] = ()) -> tuple[str, str]:
    certificate, key = _signed(name, signer, usages, addresses)
    plain = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return certificate.public_bytes(pem).decode(), key.private_bytes(pem, pkcs8, plain).decode()


@dataclass
class Fleet:
    """The members' processes; each has a folder in place of its host.

    unsynced: etcds whose members don't sync to disk. Their data still survives them, because no machine loses power here.
    """

    cluster: Cluster
    folder: Path
    authorities: dict[str, Authority]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    unsynced: tuple[str, ...] = ()

    def metrics_of(self, name: str) -> int:
        """Return the port of a member's metrics."""
        return self.metrics.setdefault(name, free_port())

    def command(self, role: str, name: str) -> list[str]:
        """Return the member's own flags. Only files and 127.0.0.1, which exist once on a host, are replaced."""
        ports = {
            settings(self.cluster, role).client_port: free_port(),
            metrics_port(self.cluster, role): self.metrics_of(name),
            http_port(self.cluster, role): free_port(),
        }
        moves = {
            pki_dir(role): f"{self.folder}/{name}{pki_dir(role)}",
            "--data-dir=": f"--data-dir={self.folder}/{name}",
        }
        moved = at_ports(flags(self.cluster, role, name, plan(self.cluster)), ports)
        for old, new in moves.items():
            moved = [flag.replace(old, new) for flag in moved]
        return [str(PROGRAMS["etcd"]), *moved, *(["--unsafe-no-fsync"] if role in self.unsynced else [])]

    def place(self, role: str, name: str) -> None:
        """Write the files of a member before its first start."""
        data = self.folder / name / "var/lib/etcd" / role
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / f"{name}.log").touch()

    def start(self, role: str, name: str, more: str = "") -> None:
        self.place(role, name)
        with (self.folder / f"{name}.log").open("ab") as log:
            clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
            self.running[name] = subprocess.Popen(
                [*self.command(role, name), *shlex.split(more)], stdout=log, stderr=log, env=clean
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def etcdctl(
        self, role: str, client: str | None, *words: str, members_: slice = slice(None), text: str | None = None
    ):
        urls = [each.client_url for each in members(self.cluster, role, plan(self.cluster))][members_]
        command = [
            str(PROGRAMS["etcdctl"]),
            f"--endpoints={','.join(urls)}",
            "--command-timeout=2s",
            "--dial-timeout=1s",
        ]
        command.append(f"--cacert={self.folder}/{role}-ca.crt")
        if client:
            command += [f"--cert={self.folder}/{client}.crt", f"--key={self.folder}/{client}.key"]
        return subprocess.run([*command, *words], input=text, capture_output=True, text=True, check=False)

    def is_healthy(self, name: str) -> bool:
        """Return whether the member tells its host that it is healthy: it serves reads through a quorum, and has no alarm."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_of(name)}/health", timeout=5) as answer:
                return bool(json.load(answer)["health"] == "true")
        except OSError:
            return False

    def wait_until_healthy(self, role: str) -> None:
        def healthy() -> bool:
            for name, process in self.running.items():
                assert process.poll() is None, f"{name} has ended; the end of its log: {self.log(name)[-2000:]}"
            return all(self.is_healthy(each.name) for each in members(self.cluster, role, plan(self.cluster)))

        until(healthy, lambda: f"etcd {role} healthy; the end of a log: {self.log(f'etcd-{role}-1')[-2000:]}")


def issue(fleet: Fleet) -> None:
    """Write every file that the members' secret references name, bundles in order."""
    store: dict[str, str] = {f"etcd-{role}-ca.crt": ca.pem for role, ca in fleet.authorities.items()}
    for role, authority in fleet.authorities.items():
        (fleet.folder / f"{role}-ca.crt").write_text(authority.pem)
        client = pems(f"client-of-{role}", authority, ("client",))
        for kind, text in zip(("crt", "key"), client, strict=True):
            (fleet.folder / f"client-of-{role}.{kind}").write_text(text)
        for member in members(fleet.cluster, role, plan(fleet.cluster)):
            addresses = (str(member.address), "127.0.0.1")
            for kind, usages in (("server", ("server",)), ("peer", ("server", "client"))):
                pair = pems(member.name, authority, usages, addresses)
                store[f"{member.name}-{kind}.crt"], store[f"{member.name}-{kind}.key"] = pair
            for secret in secrets(role, member.name):
                path = fleet.folder / member.name / secret.path.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text((path.read_text() if path.exists() else "") + store[secret.name])


def until(true: Callable[[], bool], what: str | Callable[[], str], seconds: float = 30) -> None:
    """Wait until `true` returns true. what: the condition, for the error; a function is called only after the time-out."""
    late = f"not within {waiting.patience(seconds):g} s"
    waiting.until(true, lambda: f"{late}: {what() if callable(what) else what}", seconds)
