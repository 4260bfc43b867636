"""The real node_exporter as workers run it: whom it answers, with which certificate, and what it serves."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from cluster.metrics.identity import SAN, USER
from cluster.metrics.nodes import COLLECTORS, NODE_EXPORTER
from stacks.certificates import Request, Signed, issue
from tests.node_metrics.exporter import KUBERNETES, SCRAPER, SERVING, STRANGER, Exporter, of_kubelet, running
from tests.waiting import until

pytestmark = pytest.mark.timeout(240)
ROLE = Path(__file__).parents[2] / "roles" / "node_metrics" / "files"
OF_OTHER_HOSTS = {"node_nf_conntrack_entries", "node_nf_conntrack_entries_limit", "node_vmstat_oom_kill"}
"""Not on every kernel."""
OTHERS = re.compile(r"node_infiniband_|node_pressure_|menagerie_(?!reader_|reboot|agent)")
"""Of hardware that machines for tests lack, of kernels with PSI, and of other programs' files."""


@pytest.fixture(scope="module")
def exporter(hybrid, source, tmp_path_factory) -> Iterator[Exporter]:  # type: ignore[no-untyped-def]
    with running(hybrid, source, tmp_path_factory.mktemp("exporter")) as started:
        yield started


@pytest.fixture(scope="module")
def scraper(exporter: Exporter) -> ssl.SSLContext:
    return exporter.client(issue(KUBERNETES, SCRAPER))


def test_the_scraper_gets_metrics_from_a_server_that_it_verifies(exporter: Exporter, scraper: ssl.SSLContext) -> None:
    assert "node_memory_MemTotal_bytes" in exporter.read(scraper)


NO_SAN, NO_AUTHORITY = "could not find allowed SANs", "certificate signed by unknown authority"
NODE = Request("system:node:worker-2", ("system:nodes",), usages=("client",))
OPERATOR = Request("kubernetes-admin", ("system:masters",))


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (None, "client didn't provide a certificate"),
        ((KUBERNETES, NODE), NO_SAN),
        ((KUBERNETES, OPERATOR), NO_SAN),
        ((KUBERNETES, Request(SAN, usages=("client",))), NO_SAN),
        ((KUBERNETES, Request(USER, dns_names=(f"x.{SAN}", "menagerie.internal"), usages=("client",))), NO_SAN),
        ((KUBERNETES, Request(USER, dns_names=(SAN,), usages=("server",))), "incompatible key usage"),
        ((STRANGER, SCRAPER), NO_AUTHORITY),
        ((SERVING, SCRAPER), NO_AUTHORITY),
    ],
    ids=["nobody", "another-node", "operator", "name-only", "other-names", "for-servers", "stranger", "kubelets-ca"],
)
def test_nobody_else_gets_anything(
    exporter: Exporter, scraper: ssl.SSLContext, own: tuple[Signed, Request] | None, why: str
) -> None:
    assert refused(exporter, exporter.client(issue(*own) if own else None), why)
    assert exporter.read(scraper)


def refused(exporter: Exporter, context: ssl.SSLContext, why: str) -> bool:
    """Return whether a client gets nothing, for a reason that the exporter's journal has."""
    log = exporter.folder / "log"
    before = len(log.read_text())
    with pytest.raises(OSError, match=r"(?i)ssl|reset|broken"):
        exporter.read(context)
    until(lambda: why in log.read_text()[before:], lambda: log.read_text()[before:])
    return True


def test_without_tls_and_with_an_old_one_there_is_no_answer(exporter: Exporter) -> None:
    with socket.create_connection(("127.0.0.1", exporter.port), timeout=30) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request")
    old = exporter.client(issue(KUBERNETES, SCRAPER))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError, match=r"(?i)protocol version"):
        exporter.read(old)


def test_a_scraper_notices_a_server_with_a_certificate_of_another_authority(exporter: Exporter) -> None:
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        exporter.read(exporter.client(issue(KUBERNETES, SCRAPER), trusted=KUBERNETES))


def test_a_certificate_that_is_replaced_while_it_runs_is_served_at_the_next_connection(
    exporter: Exporter, scraper: ssl.SSLContext
) -> None:
    """systemd restarts it for another certificate; a file that changes under it does no harm."""
    before = shown(exporter, scraper)
    exporter.place("serving.pem", of_kubelet())
    after = shown(exporter, scraper)
    assert before.serial_number != after.serial_number
    (exporter.folder / "serving.pem").unlink()
    with pytest.raises(OSError, match=r"(?i)internal error"):
        exporter.read(scraper)
    exporter.place("serving.pem", of_kubelet())
    assert exporter.read(scraper)
    assert exporter.process.poll() is None


def test_authorities_that_are_replaced_count_at_the_next_connection(
    exporter: Exporter, scraper: ssl.SSLContext
) -> None:
    successor = exporter.client(issue(STRANGER, SCRAPER))
    try:
        exporter.place("clients.crt", KUBERNETES.certificate + STRANGER.certificate)
        assert exporter.read(scraper)
        assert exporter.read(successor)
        exporter.place("clients.crt", STRANGER.certificate)
        assert exporter.read(successor)
        assert refused(exporter, scraper, NO_AUTHORITY)
    finally:
        exporter.place("clients.crt", KUBERNETES.certificate)


def shown(exporter: Exporter, context: ssl.SSLContext) -> x509.Certificate:
    """Return the certificate that the exporter shows."""
    with (
        socket.create_connection(("127.0.0.1", exporter.port), timeout=30) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as tls,
    ):
        der = tls.getpeercert(binary_form=True)
    assert der
    return x509.load_der_x509_certificate(der)


@pytest.fixture(scope="module")
def series(exporter: Exporter, scraper: ssl.SSLContext) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return name in the text format -> (labels, value) of its series, with the file of our own program."""
    command = [
        sys.executable,
        "-sB",
        "-m",
        "menagerie_node_metrics",
        "host",
        f"--folder={exporter.folder / 'textfile'}",
    ]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROLE)}, stdin=subprocess.DEVNULL)
    served = defaultdict(list)
    for family in text_string_to_metric_families(exporter.read(scraper)):
        for sample in family.samples:
            served[sample.name].append((dict(sample.labels), sample.value))
    return dict(served)


def test_every_metric_of_the_catalogue_is_served_with_its_labels(series) -> None:  # type: ignore[no-untyped-def]
    catalogue = {name: metric for metric in NODE_EXPORTER.metrics for name, _ in metric.samples()}
    missing = {name for name in catalogue if name not in series and not OTHERS.match(name)}
    assert missing <= OF_OTHER_HOSTS
    for name, metric in catalogue.items():
        for labels, _ in series.get(name, ()):
            assert set(labels) == set(metric.labels), name


def test_only_collectors_of_the_catalogue_run_and_all_succeed(series) -> None:  # type: ignore[no-untyped-def]
    ran = {labels["collector"]: value for labels, value in series["node_scrape_collector_success"]}
    assert set(ran) == set(COLLECTORS)
    # They have nothing to report where there is no such hardware, or no connection tracking.
    assert {name for name, value in ran.items() if not value} <= {"infiniband", "conntrack", "pressure"}


def test_the_file_of_our_own_program_is_read_without_an_error(series) -> None:  # type: ignore[no-untyped-def]
    assert series["node_textfile_scrape_error"] == [({}, 0)]
    ((labels, _),) = series["node_textfile_mtime_seconds"]
    assert labels["file"].endswith("/menagerie_host.prom")
    assert series["menagerie_agent_tunnels"] == [({}, 0)]


@pytest.mark.parametrize(
    ("name", "path", "read"),
    [
        ("node_boot_time_seconds", "/proc/stat", lambda text: int(re.search(r"^btime (\d+)$", text, re.MULTILINE)[1])),
        (
            "node_memory_MemTotal_bytes",
            "/proc/meminfo",
            lambda text: int(re.search(r"MemTotal: +(\d+) kB", text)[1]) * 1024,
        ),
        ("node_filefd_maximum", "/proc/sys/fs/file-nr", lambda text: int(text.split()[2])),
    ],
)
def test_values_are_those_of_the_kernel(series, name: str, path: str, read: Callable[[str], int]) -> None:  # type: ignore[no-untyped-def]
    assert series[name] == [({}, read(Path(path).read_text()))]


def test_no_series_is_of_a_pod_or_a_file_system_in_memory(series) -> None:  # type: ignore[no-untyped-def]
    devices = {labels["device"] for labels, _ in series["node_network_receive_bytes_total"]}
    assert devices
    assert not any(device.startswith("veth") for device in devices)
    systems = [labels for labels, _ in series.get("node_filesystem_size_bytes", ())]
    assert not any(labels["fstype"] in ("tmpfs", "ramfs", "squashfs") for labels in systems)
    hidden = re.compile(r"/(dev|proc|run|sys)($|/)|/var/lib/(containerd|kubelet)/")
    assert not any(hidden.match(labels["mountpoint"]) for labels in systems)


def test_it_needs_little_memory(exporter: Exporter, scraper: ssl.SSLContext) -> None:
    for _ in range(20):
        exporter.read(scraper)
    text = Path(f"/proc/{exporter.process.pid}/status").read_text()
    used = int(re.search(r"VmHWM:\s+(\d+) kB", text)[1])  # type: ignore[index]
    print(f"\nnode_exporter's memory at most: {used / 1024:.0f} MiB")
    assert used < 64 * 1024
