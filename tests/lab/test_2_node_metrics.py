"""One endpoint a node in the lab: it answers the scraper's certificate and nobody else, with values of the host's kernel."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from clients.waiting import wait_until
from cluster.load import load_cluster
from cluster.metrics.nodes import COLLECTORS
from operations.stack import access_to
from sandbox.lab.hosts import run as on_host
from stacks.certificates import Signed
from tests.lab import scraping
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

HERE, OTHER, IN_REGION = "worker-1", "worker-2", "lab-region-1"
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-server-current.pem"
OF_KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"
NSPAWN_REFUSES = {"timex"}
"""Hosts of the lab may not even read how well the clock is synchronised (systemd-nspawn, "@clock")."""


@pytest.fixture(scope="module")
def nodes(lab: Run) -> dict[str, str]:
    """Node -> its address."""
    return scraping.addresses(access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")).api())


@pytest.fixture(scope="module")
def scraper(lab: Run) -> Signed:
    return scraping.scraper()


def source(node: str) -> str:
    """Return a worker at a site whose pods ask a node."""
    return OTHER if node == HERE else HERE


def values(page: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return name -> (labels, value) of its series."""
    series: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            series.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return series


def test_every_node_answers_the_scraper_with_the_certificate_of_its_kubelet(
    nodes: dict[str, str], scraper: Signed
) -> None:
    for node, address in nodes.items():

        def missing(node: str = node, address: str = address) -> str:
            answer = scraping.read(source(node), address, scraper)
            return "" if "node_memory_MemTotal_bytes" in answer.page else f"{node}: {answer.why}"

        wait_until(missing, 90, print)
        own = x509.load_pem_x509_certificate(on_host(node, ["cat", CERTIFICATE]).stdout.encode())
        assert x509.load_pem_x509_certificate(scraping.shown(source(node), address).encode()) == own


@pytest.mark.parametrize("node", [HERE, IN_REGION])
def test_nobody_else_gets_anything(nodes: dict[str, str], scraper: Signed, node: str) -> None:
    access = access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml"))
    pem = on_host(OTHER, ["cat", OF_KUBELET]).stdout
    others = {
        "nobody": None,
        "root on another worker": Signed(pem, pem),
        "an operator": Signed(access.certificate, access.key),
    }
    answers = {who: scraping.read(source(node), nodes[node], own) for who, own in others.items()}
    assert {who: answer.page for who, answer in answers.items()} == dict.fromkeys(others, "")
    assert all(re.search("(?i)alert|certificate|EOF|reset|broken", answer.why) for answer in answers.values()), answers
    assert scraping.read(source(node), nodes[node], scraper).page


def test_an_api_server_reaches_no_node_s_endpoint(nodes: dict[str, str], scraper: Signed) -> None:
    """Its host has the authority's key, but no firewall lets it in."""
    for node in (HERE, IN_REGION):
        answer = scraping.read(scraping.API_HOST, nodes[node], scraper)
        assert (answer.page, "timed out" in answer.why) == ("", True), answer.why


@pytest.mark.parametrize("node", [HERE, IN_REGION])
@pytest.mark.parametrize(
    ("name", "path", "read"),
    [
        ("node_boot_time_seconds", "/proc/stat", lambda text: int(re.search(r"^btime (\d+)$", text, re.MULTILINE)[1])),
        (
            "node_memory_MemTotal_bytes",
            "/proc/meminfo",
            lambda text: int(re.search(r"MemTotal: +(\d+)", text)[1]) << 10,
        ),
        ("node_filefd_maximum", "/proc/sys/fs/file-nr", lambda text: int(text.split()[2])),
    ],
)
def test_values_are_those_of_the_host_s_kernel(
    nodes: dict[str, str], scraper: Signed, node: str, name: str, path: str, read: Callable[[str], int]
) -> None:
    series = values(scraping.read(source(node), nodes[node], scraper).page)
    assert series[name] == [({}, read(on_host(node, ["cat", path]).stdout))]


@pytest.mark.parametrize("node", [HERE, IN_REGION])
def test_collectors_succeed_and_the_node_s_own_services_are_reported(
    nodes: dict[str, str], scraper: Signed, node: str
) -> None:
    def missing() -> str:
        """A turn of the timer may still be to come after the tests before."""
        series = values(scraping.read(source(node), nodes[node], scraper).page)
        active = {labels["unit"]: value for labels, value in series.get("menagerie_unit_active", ())}
        ((_, tunnels),) = series.get("menagerie_agent_tunnels", [({}, 0)])
        services = ("containerd.service", "flanneld.service", "kubelet.service")
        return "" if active == dict.fromkeys(services, 1) and tunnels >= 1 else f"{active}, {tunnels} tunnels"

    wait_until(missing, 180, print)
    series = values(scraping.read(source(node), nodes[node], scraper).page)
    ran = {labels["collector"]: value for labels, value in series["node_scrape_collector_success"]}
    assert set(ran) == set(COLLECTORS)
    assert {name for name, value in ran.items() if not value} <= {"infiniband", "pressure"} | NSPAWN_REFUSES
    assert series["node_textfile_scrape_error"] == [({}, 0)]
    failed = {labels["reader"]: value for labels, value in series["menagerie_reader_failed"]}
    assert failed == {"systemd": 0, "exporter": 0}


def test_it_is_no_user_of_the_host_and_has_no_capability(lab: Run) -> None:
    process = on_host(HERE, ["systemctl", "show", "--property=MainPID", "--value", "node-exporter.service"]).stdout
    status = on_host(HERE, ["cat", f"/proc/{process.strip()}/status"]).stdout
    (uid,) = set(re.findall(r"^Uid:\s+(\d+)", status, re.MULTILINE))
    assert int(uid) >= 61184, "a dynamic user (systemd.exec(5), DynamicUser=)"
    assert re.findall(r"^Cap(?:Eff|Prm|Bnd):\s+(\w+)$", status, re.MULTILINE) == ["0" * 16] * 3


def test_another_certificate_of_the_kubelet_is_served_after_the_next_turn(
    nodes: dict[str, str], scraper: Signed
) -> None:
    """As in a rotation of its authority: the link is removed, and the kubelet requests another."""
    before = scraping.shown(HERE, nodes[OTHER])
    on_host(OTHER, ["sh", "-c", f"rm -f {CERTIFICATE} && systemctl restart kubelet.service"])

    def missing() -> str:
        own = on_host(OTHER, ["cat", CERTIFICATE]).stdout
        if not own:
            return "no certificate yet"
        shown = scraping.shown(HERE, nodes[OTHER])
        return "" if shown and shown != before and shown.strip() in own else "another certificate is shown"

    wait_until(missing, 180, print)
    assert scraping.read(HERE, nodes[OTHER], scraper).page
