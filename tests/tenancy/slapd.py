"""A real slapd (Debian's package) as an ordinary process on loopback, with its configuration and data in a folder.

It runs a copy of the program: with AppArmor, Debian's profile keeps the one in /usr/sbin out of other folders.
"""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.control_plane.real_api import started
from tests.ports import free_ports
from tests.strict_certificates import strict
from tests.waiting import patience, until

PROGRAM = Path("/usr/sbin/slapd")
BASE = "dc=example,dc=org"
READER, PASSWORD = f"cn=menagerie,{BASE}", "a-password-of-this-test"
_PATIENCE_S = 30
_CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
TLSCACertificateFile {folder}/ca.crt
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
{more}
database mdb
suffix {base}
rootdn cn=admin,{base}
directory {folder}/data
maxsize 104857600
dbnosync
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{reader}" read by * none
"""
_ROOT = f"""
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=teams,{BASE}
objectClass: organizationalUnit
ou: teams

dn: {READER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: menagerie
userPassword: {PASSWORD}
"""


@dataclass(frozen=True)
class Slapd:
    """A running slapd. url: with TLS. plain: without. ca: file of its CA."""

    url: str
    plain: str
    ca: Path
    port: int
    plain_port: int


def person(uid: str, **more: str) -> str:
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    return (
        f"\ndn: uid={uid},ou=people,{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid.title()}\nsn: x\n{extra}"
    )


def group(cn: str, members: list[str], owners: list[str] = [], where: str = f"ou=people,{BASE}") -> str:  # noqa: B006
    lines = [f"member: uid={uid},{where}" for uid in members] + [f"owner: uid={uid},{where}" for uid in owners]
    return f"\ndn: cn={cn},ou=teams,{BASE}\nobjectClass: groupOfNames\ncn: {cn}\n" + "".join(
        f"{one}\n" for one in lines
    )


def posix(cn: str, members: list[str]) -> str:
    lines = "".join(f"memberUid: {uid}\n" for uid in members)
    return f"\ndn: cn={cn},ou=teams,{BASE}\nobjectClass: posixGroup\ncn: {cn}\ngidNumber: 7\n{lines}"


@contextmanager
def running(folder: Path, entries: str, more: str = "sizelimit unlimited") -> Iterator[Slapd]:
    """Run slapd during a block. more: configuration lines before the database. OpenLDAP's default limit is 500 entries over all pages."""
    if not PROGRAM.is_file():
        pytest.skip("no slapd on this machine: tools/setup.sh")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir()
    program = folder / "slapd"
    shutil.copy(PROGRAM, program)
    _certificates(folder)
    configuration = folder / "slapd.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, base=BASE, reader=READER, more=more))
    ldif = folder / "entries.ldif"
    ldif.write_text(f"{_ROOT}{entries}")
    subprocess.run([program, "-T", "add", "-q", "-f", configuration, "-l", ldif], check=True, capture_output=True)
    port, plain = free_ports(2)
    urls = f"ldaps://127.0.0.1:{port}/ ldap://127.0.0.1:{plain}/"
    with started("slapd", [program, "-f", configuration, "-h", urls, "-d", "0"], folder):
        _wait(port, folder / "slapd.log")
        yield Slapd(f"ldaps://127.0.0.1:{port}", f"ldap://127.0.0.1:{plain}", folder / "ca.crt", port, plain)


def _wait(port: int, log: Path) -> None:
    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), patience(1)):
            return True
        return False

    until(answers, lambda: log.read_text()[-2000:], _PATIENCE_S)


def _certificates(folder: Path) -> None:
    """Write a CA, and a server certificate for 127.0.0.1 and for no name."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "server")}
    names = {name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in keys}
    now = datetime.datetime.now(datetime.UTC)
    for name, key in keys.items():
        builder = (
            x509.CertificateBuilder()
            .subject_name(names[name])
            .issuer_name(names["ca"])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
        )
        if name == "server":
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        builder = strict(builder, key.public_key(), keys["ca"].public_key(), is_authority=name == "ca")
        pem = builder.sign(keys["ca"], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        (folder / f"{name}.crt").write_bytes(pem)
        kind = serialization.PrivateFormat.PKCS8
        text = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
        (folder / f"{name}.key").write_bytes(text)


@contextmanager
def between(port: int, *, cut_after: int = 0, dripped: Callable[[], None] | None = None) -> Iterator[int]:
    """Forward a port to another one. cut_after: bytes of answers until the connection is cut. dripped: called after each byte of them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", port))
                    threading.Thread(target=_copy, args=(client, server, 0, None), daemon=True).start()
                    threading.Thread(target=_copy, args=(server, client, cut_after, dripped), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def _copy(source: socket.socket, to: socket.socket, cut_after: int, dripped: Callable[[], None] | None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(1 if dripped else 4096):
            if cut_after and passed + len(data) > cut_after:
                break
            to.sendall(data)
            passed += len(data)
            if dripped:
                dripped()
    for end in (source, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
