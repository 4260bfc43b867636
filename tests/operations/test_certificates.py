"""`status` of certificates of real TLS servers on loopback, one of them an etcd."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clients.access import Access
from clients.etcd_client import EtcdClient
from cluster.outputs import EtcdOutput, HostOutput
from operations.status import StatusItem
from operations.status.certificates import certificates
from operations.status.etcds import figures
from stacks.certificates import Request, Signed, issue, new_authority
from tests.operations.conftest import outputs
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until

CA, ETCD_CA = new_authority("kubernetes"), new_authority("etcd-main")
OPERATOR = issue(CA, Request("menagerie-operator", usages=("client",), days=30))
OPERATOR_ETCD = issue(ETCD_CA, Request("menagerie-operator", usages=("client",), days=30))


@contextmanager
def serving(folder: Path, signed: Signed) -> Iterator[int]:
    """Run a TLS server with a certificate; yield its port."""
    (folder / "server.pem").write_text(signed.certificate + signed.private_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except OSError:
                    plain.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def access_to(api: int, etcd: int) -> Access:
    members = (HostOutput(name="etcd-main-1", address="127.0.0.1"),)
    outputs_ = outputs().model_copy(
        update={
            "endpoint": f"127.0.0.1:{api}",
            "ca_pem": CA.certificate,
            "api_servers": (HostOutput(name="api-1", address="127.0.0.1"),),
            "etcds": {"main": EtcdOutput(members=members, client_port=etcd, ca_pem=ETCD_CA.certificate)},
        }
    )
    return Access(
        outputs_, OPERATOR.certificate, OPERATOR.private_key, OPERATOR_ETCD.certificate, OPERATOR_ETCD.private_key, ""
    )


def by_name(access: Access, days: int = 0) -> dict[str, StatusItem]:
    return {item.name: item for item in certificates(access, datetime.now(UTC) + timedelta(days=days))}


@pytest.fixture
def nowhere() -> int:
    """Return a port at which nobody listens."""
    return free_port()


def test_each_kind_is_one_line_with_the_remaining_days(tmp_path: Path, nowhere: int) -> None:
    with serving(tmp_path, issue(CA, Request("kube-apiserver", days=365))) as port:
        items = by_name(access_to(port, nowhere))
    assert all(item.ok for item in items.values())
    assert list(items) == ["of operators", "of authorities", "of API servers"]
    assert items["of operators"].detail.startswith(("29 days left at least", "30 days left at least"))
    assert items["of API servers"].detail == "364 days left at least (api-1); 1 checked"


@pytest.mark.parametrize(("days", "detail"), [(310, "54 days left, until "), (366, "expired on ")])
def test_a_certificate_in_the_last_sixth_of_its_lifetime_is_reported(
    tmp_path: Path, nowhere: int, days: int, detail: str
) -> None:
    with serving(tmp_path, issue(CA, Request("kube-apiserver", days=365))) as port:
        items = by_name(access_to(port, nowhere), days)
    item = items["of API servers: api-1"]
    assert not item.ok
    assert item.detail.startswith(detail)
    assert item.help == "./menagerie up lab"


def test_a_certificate_from_an_unknown_authority_is_reported(tmp_path: Path, nowhere: int) -> None:
    with serving(tmp_path, issue(new_authority("other"), Request("kube-apiserver"))) as port:
        item = by_name(access_to(port, nowhere))["of API servers: api-1"]
    assert (item.ok, item.detail) == (False, "not issued by the stack's CA, but by CN=other")


def test_a_certificate_that_is_not_valid_yet_points_at_the_clock(tmp_path: Path, nowhere: int) -> None:
    items = by_name(access_to(nowhere, nowhere), days=-2)
    assert "is this machine's clock right?" in items["of operators: the API"].detail


@pytest.fixture
def member(tmp_path: Path, nowhere: int) -> Iterator[int]:
    """Yield the client port of a real etcd with one member."""
    names = Request("etcd-main-1", dns_names=("localhost",), addresses=("127.0.0.1",))
    signed = issue(ETCD_CA, names)
    for name, text in (("ca", ETCD_CA.certificate), ("crt", signed.certificate), ("key", signed.private_key)):
        (tmp_path / name).write_text(text)
    peer = free_port()
    command = [
        program("etcd"), "--data-dir", tmp_path / "etcd", "--unsafe-no-fsync", "--client-cert-auth",
        "--listen-client-urls", f"https://127.0.0.1:{nowhere}", "--advertise-client-urls", f"https://127.0.0.1:{nowhere}",
        "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
        "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--trusted-ca-file", tmp_path / "ca",
        "--cert-file", tmp_path / "crt", "--key-file", tmp_path / "key",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            etcd = EtcdClient(access_to(nowhere, nowhere), "main")
            until(lambda: not etcd.ailments()["etcd-main-1"], "etcd never answered", every_s=0.2)
            yield nowhere
        finally:
            process.kill()


@pytest.mark.programs
def test_a_real_member_presents_its_certificate_and_its_figures(member: int) -> None:
    access = access_to(1, member)
    items = by_name(access)
    assert items["of etcd main"].detail == "364 days left at least (etcd-main-1); 1 checked"
    one, quorum = figures("lab", "main", EtcdClient(access, "main"))
    assert one.ok
    assert one.detail.startswith("member of main, healthy, leader, 0 MiB in use, 0 MiB on disk of 2.0 GiB")
    assert (quorum.ok, quorum.detail) == (True, "1 of 1 members respond; leader: etcd-main-1, term 2")
