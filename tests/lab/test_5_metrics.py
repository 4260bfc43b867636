"""The catalogues of metrics compared with what the lab's programs serve. With `-s`, it prints the real number of series."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clients.access import Access
from cluster.load import load_cluster
from cluster.metrics.jobs import BY_NAME
from cluster.metrics.kept import used
from cluster.metrics.model import Metric, Per
from cluster.spec import RoleName
from components.control_plane.ports import API_PORT, KONNECTIVITY_HEALTH_PORT
from etcd.members import metrics_port
from operations.stack import access_to
from sandbox.lab.hosts import inside
from tests.lab import scraping
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

CLUSTER = load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")
API_HOST, WORKER = "api-1", "worker-1"
QUIET = {
    # They appear when something is counted for the first time.
    *(
        "etcd_debugging_server_alarms",
        "etcd_network_peer_sent_failures_total",
        "etcd_network_peer_received_failures_total",
    ),
    *("etcd_network_disconnected_peers_total", "apiserver_flowcontrol_rejected_requests_total"),
    *("apiserver_requested_deprecated_apis", "konnectivity_network_proxy_server_dial_failure_count"),
    *("konnectivity_network_proxy_agent_endpoint_dial_failure_total", "scheduler_preemption_attempts_total"),
    *("coredns_forward_healthcheck_broken_total", "coredns_proxy_healthcheck_failures_total", "kubelet_evictions"),
    *("container_oom_events_total", "scheduler_pod_scheduling_sli_duration_seconds_bucket"),
    *("kubelet_certificate_manager_client_expiration_renew_errors", "kubelet_started_pods_errors_total"),
    "kubelet_runtime_operations_errors_total",
    # Hosts of the lab may not read how well the clock is synchronised, and have neither GPUs, RDMA nor DGX's checks.
    *("node_timex_offset_seconds", "node_timex_sync_status", "node_timex_maxerror_seconds"),
    *(
        metric.name
        for metric in BY_NAME["node"].exporter.metrics
        if metric.per in (Per.GPU, Per.GPU_NODE, Per.RDMA_PORT)
    ),
    *(f"menagerie_neighbours_{name}" for name in ("entries", "limit", "overflows_total")),
}
# Reads a URL on the host; the certificate and key of an operator arrive on standard input.
_READ = """
import os, ssl, sys, tempfile, urllib.request
pem = sys.stdin.read()
context = ssl._create_unverified_context()
if pem:
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
sys.stdout.write(urllib.request.build_opener(*handlers).open(sys.argv[1], timeout=20).read().decode())
"""


@pytest.fixture(scope="module")
def access(lab: Run) -> Access:
    return access_to(CLUSTER)


def on_host(host: str, url: str, pem: str = "") -> str:
    """Return a page as a program on a host of the lab reads it."""
    command = inside(host, ["python3", "-c", _READ, url])
    return subprocess.run(command, input=pem, capture_output=True, text=True, timeout=60, check=True).stdout


def of_etcd(role: RoleName) -> Callable[[Access], str]:
    return lambda _: on_host(f"etcd-{role}-1", f"http://127.0.0.1:{metrics_port(CLUSTER, role)}/metrics")


def of_operator(port: int) -> Callable[[Access], str]:
    return lambda access: on_host(API_HOST, f"https://127.0.0.1:{port}/metrics", access.certificate + access.key)


def of_leader(program: str, port: int) -> Callable[[Access], str]:
    """Read the instance that works: the others have counted nothing yet. Its lease names its host."""

    def read(access: Access) -> str:
        lease = json.loads(access.ask((f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{program}",))[0])
        host = lease["spec"]["holderIdentity"].partition("_")[0]
        return on_host(host, f"https://127.0.0.1:{port}/metrics", access.certificate + access.key)

    return read


def of_kubelet(path: str) -> Callable[[Access], str]:
    return lambda access: access.ask((f"/api/v1/nodes/{WORKER}/proxy{path}",))[0]


def of_coredns(access: Access) -> str:
    pods = access.ask(("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns",))[0]
    name = re.findall(r'"name":\s*"(coredns-[a-z0-9]+-[a-z0-9]+)"', pods)[0]
    return access.ask((f"/api/v1/namespaces/kube-system/pods/{name}:9153/proxy/metrics",))[0]


def of_node(access: Access) -> str:
    return scraping.read("worker-2", scraping.addresses(access.api())[WORKER], scraping.scraper()).page


PAGES: Mapping[str, Callable[[Access], str]] = {
    "node": of_node,
    "kube-apiserver": of_operator(API_PORT),
    "kube-scheduler": of_leader("kube-scheduler", 10259),
    "kube-controller-manager": of_leader("kube-controller-manager", 10257),
    "konnectivity-server": lambda _: on_host(API_HOST, "http://127.0.0.1:8095/metrics"),
    "konnectivity-agent": lambda _: on_host(WORKER, f"http://127.0.0.1:{KONNECTIVITY_HEALTH_PORT}/metrics"),
    "etcd-main": of_etcd("main"),
    "etcd-events": of_etcd("events"),
    "kubelet": of_kubelet("/metrics"),
    "kubelet-resources": of_kubelet("/metrics/resource"),
    "cadvisor": of_kubelet("/metrics/cadvisor"),
    "coredns": of_coredns,
}


def served(text: str) -> dict[str, list[frozenset[str]]]:
    """Return name in the text format -> the labels of each of its series."""
    series = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series[sample.name].append(frozenset(sample.labels))
    return dict(series)


@pytest.mark.parametrize("job", PAGES)
def test_a_program_serves_the_metrics_of_its_catalogue(access: Access, job: str) -> None:
    page = served(PAGES[job](access))
    catalogue = BY_NAME[job].samples()
    print(
        f"\n{job}: {sum(map(len, page.values())):,} series, of which {sum(len(page.get(n, ())) for n in used()[job]):,} are kept"
    )
    absent = sorted(set(catalogue) - set(page) - QUIET)
    print(f"  in the catalogue and not served: {', '.join(absent) or 'none'}")
    assert sorted(set(used()[job]) - set(page) - QUIET) == []
    assert [name for name in catalogue if name in page and wrong(catalogue[name][0], name, page[name])] == []


def wrong(metric: Metric, name: str, series: list[frozenset[str]]) -> bool:
    """Return whether a metric has other labels than in the catalogue; labels without a value may be left out."""
    labels = set(metric.labels) - ({"le"} if not name.endswith("_bucket") else set())
    unknown = frozenset[str]().union(*series) - labels
    if unknown:
        print(f"  {name}: {', '.join(sorted(unknown))} not in the catalogue")
    return bool(unknown)


@pytest.mark.parametrize("job", [job for job in PAGES if job not in ("kubelet-resources", "cadvisor")])
def test_an_endpoint_has_at_most_as_many_series_of_each_kept_metric_as_planned(access: Access, job: str) -> None:
    """Only metrics whose number does not depend on the cluster's size."""
    page, catalogue = served(PAGES[job](access)), BY_NAME[job].samples()
    more = {}
    for name in used()[job]:
        metric, times = catalogue[name]
        if metric.per is Per.TARGET and len(page.get(name, ())) > math.ceil(times):
            more[name] = (len(page[name]), times)
    assert more == {}
