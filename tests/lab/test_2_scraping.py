"""Metrics of the control plane in the lab, read by a pod with the scraper's keys, and by pods and hosts without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from kubernetes import client

from clients.waiting import is_ready, wait_until
from cluster import versions
from cluster.load import load_cluster
from cluster.metrics import relay
from cluster.spec import Cluster
from components.control_plane.host import scraping
from components.monitoring.targets import Targets, targets
from network.addresses import plan
from operations.stack import access_to
from operations.verify.workload import CONTAINER_SECURITY
from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

WORKER, IN_REGION = "worker-1", "lab-region-1"
TENANT = "scraping-tenant"
KEYS = "/etc/scraper"
SAMPLES = {
    "kube-apiserver": "apiserver_request_total",
    "kube-scheduler": "scheduler_pending_pods",
    "kube-controller-manager": "workqueue_depth",
    "konnectivity-server": "konnectivity_network_proxy_server_ready_backend_connections",
    "etcd-main": "etcd_server_has_leader 1",
    "etcd-events": "etcd_server_has_leader 1",
}


@pytest.fixture(scope="module")
def cluster(lab: Run) -> Cluster:
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture(scope="module")
def core(cluster: Cluster) -> client.CoreV1Api:
    return client.CoreV1Api(access_to(cluster).api())


@pytest.fixture(scope="module")
def places(cluster: Cluster) -> dict[str, tuple[Targets, list[str]]]:
    """Job -> its targets, with the address of each of its hosts."""
    addresses = plan(cluster)
    servers = [str(host.address) for host in addresses.api_servers]
    return {
        job: (place, [each.partition(":")[0] for each in place.addresses] or servers)
        for job, place in targets(cluster, addresses).items()
    }


def spec(seconds: int, *, with_keys: bool) -> dict[str, Any]:
    """Return a pod on the worker that sleeps; so many seconds, by which its process is known there."""
    container: dict[str, Any] = {
        "name": "a",
        "image": f"docker.io/library/busybox:{versions.BUSYBOX}",
        "command": ["sleep", str(seconds)],
        "securityContext": CONTAINER_SECURITY,
    }
    pod = {
        "nodeName": WORKER,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    if not with_keys:
        return pod
    sources = [{"secret": {"name": scraping.SECRET}}, {"configMap": {"name": scraping.AUTHORITIES}}]
    container["volumeMounts"] = [{"name": "keys", "mountPath": KEYS, "readOnly": True}]
    return {**pod, "volumes": [{"name": "keys", "projected": {"sources": sources}}]}


@contextmanager
def running(core: client.CoreV1Api, namespace: str, seconds: int, *, with_keys: bool) -> Iterator[str]:
    """Run the pod; yield the process on its worker."""
    name = f"scraping-{seconds}"
    core.create_namespaced_pod(namespace, {"metadata": {"name": name}, "spec": spec(seconds, with_keys=with_keys)})
    try:
        wait_until(lambda: "" if is_ready(core.read_namespaced_pod(name, namespace)) else name, 120, print)
        yield on_host(WORKER, ["pgrep", "-fx", f"sleep {seconds}"]).stdout.strip()
    finally:
        core.delete_namespaced_pod(name, namespace)


@pytest.fixture(scope="module")
def scraper(core: client.CoreV1Api) -> Iterator[str]:
    with running(core, scraping.NAMESPACE, 86_001, with_keys=True) as process:
        assert process.isdecimal()
        yield process


@pytest.fixture(scope="module")
def tenant(core: client.CoreV1Api) -> Iterator[str]:
    """A pod in a namespace of somebody else."""
    with ExitStack() as ends:
        core.create_namespace({"metadata": {"name": TENANT}})
        ends.callback(core.delete_namespace, TENANT)
        process = ends.enter_context(running(core, TENANT, 86_002, with_keys=False))
        assert process.isdecimal()
        yield process


def ask(process: str, keys: str, place: Targets, address: str) -> tuple[int, str]:
    """Ask a relay from the network of a pod, with the keys that it has mounted, "" for none. Return curl's code, and the answer."""
    name = place.server_name or address
    files = f"/proc/{keys}/root{KEYS}"
    pair = ["--cert", f"{files}/tls.crt", "--key", f"{files}/tls.key"] if keys else []
    words = [
        *("curl", "-sS", "-m", "20", "--fail-with-body"),
        *(["--cacert", f"{files}/ca.crt"] if keys else ["--insecure"]),
        *pair,
        *("--connect-to", f"{name}:{place.port}:{address}:{place.port}"),
        f"https://{name}:{place.port}{place.path}",
    ]
    done = on_host(WORKER, ["nsenter", "-t", process, "-n", *words])
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("job", SAMPLES)
def test_a_pod_with_the_scrapers_keys_reads_every_job_on_every_host(
    scraper: str, places: dict[str, tuple[Targets, list[str]]], job: str
) -> None:
    assert set(places) == set(SAMPLES)
    place, addresses = places[job]
    assert addresses
    for address in addresses:
        code, text = ask(scraper, scraper, place, address)
        assert code == 0, f"{address}: {text[:500]}"
        assert SAMPLES[job] in text, address


def test_counters_of_api_servers_are_their_own(scraper: str, places: dict[str, tuple[Targets, list[str]]]) -> None:
    place, addresses = places["kube-apiserver"]
    starts = set()
    for address in addresses:
        _, text = ask(scraper, scraper, place, address)
        starts |= {line for line in text.splitlines() if line.startswith("process_start_time_seconds ")}
    assert len(starts) == len(addresses) > 1


def test_the_service_has_the_addresses_of_all_api_servers(
    core: client.CoreV1Api, cluster: Cluster, scraper: str, places: dict[str, tuple[Targets, list[str]]]
) -> None:
    slices = client.DiscoveryV1Api(core.api_client).list_namespaced_endpoint_slice(scraping.NAMESPACE).items
    held = {address for each in slices for end in each.endpoints for address in end.addresses}
    assert held == {str(host.address) for host in plan(cluster).api_servers}
    place, _ = places["kube-apiserver"]

    def missing() -> str:
        said = on_host(WORKER, ["nsenter", "-t", scraper, "-n", "-m", "nslookup", place.service]).stdout
        return "" if all(address in said for address in held) else said

    wait_until(missing, 60, print)


@pytest.mark.parametrize("job", SAMPLES)
def test_without_a_certificate_a_pod_gets_no_answer_in_its_own_namespace_or_a_tenants(
    scraper: str, tenant: str, places: dict[str, tuple[Targets, list[str]]], job: str
) -> None:
    place, addresses = places[job]
    for process in (scraper, tenant):
        for address in addresses:
            code, text = ask(process, "", place, address)
            assert code != 0
            assert "alert" in text, f"it was reached, and refused: {text[:300]}"
            assert SAMPLES[job] not in text


def test_a_kubelets_certificate_is_not_the_scrapers(
    scraper: str, tenant: str, places: dict[str, tuple[Targets, list[str]]]
) -> None:
    """Root on any worker has one of the same authority."""
    place, addresses = places["etcd-main"]
    own = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    url = f"https://{addresses[0]}:{place.port}{place.path}"
    done = on_host(WORKER, ["curl", "-sS", "-m", "20", "--insecure", "--cert", own, "--key", own, url])
    assert done.stdout == "this certificate is not the scraper's\n"


def test_a_tenants_pod_cannot_mount_the_scrapers_keys(core: client.CoreV1Api, tenant: str) -> None:
    name = "scraping-mounts"
    core.create_namespaced_pod(TENANT, {"metadata": {"name": name}, "spec": spec(86_003, with_keys=True)})

    def missing() -> str:
        events = core.list_namespaced_event(TENANT, field_selector=f"involvedObject.name={name}").items
        texts = [event.message for event in events if event.reason == "FailedMount"]
        return "" if any("not found" in text for text in texts) else str(texts)

    wait_until(missing, 120, print)
    assert not is_ready(core.read_namespaced_pod(name, TENANT))


def test_workers_of_another_kind_do_not_reach_the_port(places: dict[str, tuple[Targets, list[str]]]) -> None:
    """The scraper runs at the site, so the table of flows has no row for the region."""
    for job in ("kube-apiserver", "etcd-main", "etcd-events"):
        place, addresses = places[job]
        for address in addresses:
            words = ["curl", "-sS", "-m", "3", "--insecure", f"https://{address}:{place.port}/"]
            done = on_host(IN_REGION, words)
            assert (done.returncode, done.stdout) == (28, ""), done.stderr


def test_a_host_whose_program_is_down_says_so_and_the_others_answer(
    scraper: str, places: dict[str, tuple[Targets, list[str]]]
) -> None:
    place, addresses = places["kube-scheduler"]
    on_host("api-1", ["systemctl", "stop", "kube-scheduler.service"])
    try:
        code, text = ask(scraper, scraper, place, addresses[0])
        assert code != 0
        assert "kube-scheduler does not answer" in text
        assert ask(scraper, scraper, place, addresses[1])[0] == 0
        other, _ = places["kube-apiserver"]
        assert ask(scraper, scraper, other, addresses[0])[0] == 0
    finally:
        on_host("api-1", ["systemctl", "start", "kube-scheduler.service"])

    def missing() -> str:
        code, text = ask(scraper, scraper, place, addresses[0])
        return text[:300] if code else ""

    wait_until(missing, 60, print)


def test_relays_run_as_a_user_of_their_own(cluster: Cluster) -> None:
    for host in ("api-1", "etcd-main-1", "etcd-events-1"):
        shown = on_host(host, ["systemctl", "show", "-pUser", "-pActiveState", f"{relay.NAME}.service"]).stdout
        assert set(shown.split()) == {"User=metrics-relay", "ActiveState=active"}, host
