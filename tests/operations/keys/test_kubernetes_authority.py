"""The authority of Kubernetes is rotated, with a real API server and controller manager, workers that follow, one that does not
until an operator updates it, and a pod that read the authorities only once."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import urllib3
import yaml
from cryptography import x509
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import Access
from cluster.errors import FailedError
from cluster.key_rings import Ring
from operations.keys import kubelets, rings, trusted
from operations.keys.status import key_status
from stacks.certificates import Request, Signed, issue
from stacks.errors import StackError
from tests.operations.keys.region import Region
from tests.operations.keys.scraper import Keys, scrape
from tests.operations.keys.test_rotation import Cut, rotation
from tests.operations.keys.workers import CLIENT, Worker, asked_for, worker

pytestmark = pytest.mark.timeout(2400)
MOST_CONFIGURES = 5


def subjects(pem: str) -> list[str]:
    return sorted(each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(pem.encode()))


def issuer(signed: Signed) -> str:
    return x509.load_pem_x509_certificate(signed.certificate.encode()).issuer.rfc4514_string()


def answers(access: Access) -> str:
    """Return why a connection fails, "" if the API and the client accept each other's certificates."""
    try:
        client.CoreV1Api(access.api()).list_namespace(_request_timeout=5)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return str(error)
    return ""


@contextmanager
def following(worker: Worker) -> Iterator[None]:
    """Follow like workers in the region, but every few seconds instead of every ten minutes."""
    over = threading.Event()
    failures: list[str] = []

    def keep() -> None:
        while not over.wait(1.0):
            try:
                worker.follow()
            except (AssertionError, StackError, ApiException, urllib3.exceptions.HTTPError) as error:
                # The API server may be restarting, or the engine writing its configuration; the next round retries.
                failures.append(str(error))

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(120)
    assert not any("Traceback" in each for each in failures), failures


class Deployed:
    """Create a Deployment with one pod; a substitute for its kubelet sets it to running at once."""

    def __init__(self, world: Region, name: str) -> None:
        self.world, self.name = world, name
        pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
        spec = {"selector": {"matchLabels": {"app": name}}, "template": pod}
        self.apps.create_namespaced_deployment("default", {"metadata": {"name": name}, "spec": spec})
        self.run()

    @property
    def apps(self) -> client.AppsV1Api:
        return client.AppsV1Api(self.world.access().api())

    def run(self) -> None:
        core = client.CoreV1Api(self.world.access().api())
        for _ in range(300):
            if pods := core.list_namespaced_pod("default", label_selector=f"app={self.name}").items:
                break
            time.sleep(0.2)
        (pod,) = pods
        running = {"startedAt": datetime.now(UTC).isoformat()}
        container = {
            "name": "c",
            "image": "x:1",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": running},
        }
        core.patch_namespaced_pod_status(
            pod.metadata.name, "default", {"status": {"phase": "Running", "containerStatuses": [container]}}
        )

    def make_anew(self) -> None:
        """Do what a restart does to a pod."""
        core = client.CoreV1Api(self.world.access().api())
        (pod,) = core.list_namespaced_pod("default", label_selector=f"app={self.name}").items
        core.delete_namespaced_pod(pod.metadata.name, "default", grace_period_seconds=0)
        self.run()

    def remove(self) -> None:
        self.apps.delete_namespaced_deployment(self.name, "default")


@pytest.fixture
def workers(world: Region) -> Iterator[tuple[Worker, Worker]]:
    """A worker in the region, which follows automatically, and one at a site, which an operator updates."""
    with (
        worker(world, "w-region", in_region=True) as near,
        worker(world, "w-site", in_region=False) as far,
        following(near),
    ):
        yield near, far


@pytest.fixture
def deployed(world: Region) -> Iterator[Deployed]:
    made = Deployed(world, "asks")
    yield made
    made.remove()


class Enough(Exception):
    """The operator stops here."""


def step_by_step(
    world: Region, after: Callable[[str], None], site: Worker, pods: Callable[[], None] | None, *, back: bool = False
) -> list[str]:
    """Rotate as an operator does, with an interruption in every state. Return what was reported, in order.

    pods: recreates the reported pods; None if the operator vouches for them. after: may raise `Enough` to end it.
    """
    steps: list[str] = []

    def done(step: str) -> None:
        if step in steps:
            return
        steps.append(step)
        if step.startswith("kubernetes-ca"):
            raise Cut

    while True:
        try:
            rotation(world, "kubernetes-ca", done).run(back=back, pods_follow=pods is None)
        except Cut:
            try:
                after(steps[-1])
            except Enough:
                return steps
        except FailedError as error:
            if error.code == "kubelets-behind":
                assert "w-site" in str(error)
                assert steps.count("configure") < MOST_CONFIGURES, "the worker is still behind after `configure`"
                steps.append("configure")
                site.follow()
                continue
            assert error.code == "pods-behind"
            assert "kubectl -n default rollout restart deployment/asks" in str(error).splitlines()[1]
            steps.append("restart")
            assert pods, "it was not asked"
            pods()
        else:
            return steps


@pytest.mark.soak
def test_all_sides_trust_each_other_in_every_state_and_nobody_trusts_the_former_authority_afterwards(
    world: Region, workers: tuple[Worker, Worker], deployed: Deployed
) -> None:
    _, far = workers
    former = world.access()
    pki = world.api.root / "etc/kubernetes/pki"
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    node = [issue(authority, Request("system:node:w1", ("system:nodes",), usages=("client",)))]
    by_state: dict[str, tuple[str, list[str]]] = {}
    held = [Keys.read(former)]
    assert set(scrape(world, held[0]).values()) == {""}

    def seen_in(state: str) -> None:
        api = world.access().api()
        held.append(Keys.read(world.access()))
        for keys in held[-2:]:
            assert set(scrape(world, keys).values()) == {""}, f"a scraper of {state}, or one that is a step behind"
        root = client.CoreV1Api(api).read_namespaced_config_map(trusted.ROOT, "default").data["ca.crt"]
        node.append(asked_for(world.access(), "w1", node[-1], CLIENT))
        by_state[state] = (issuer(node[-1]), subjects(root))
        for kubeconfig in (world.api.root / "etc/kubernetes").glob("*.conf"):
            cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
            trusted_ = subjects(base64.b64decode(cluster["certificate-authority-data"]).decode())
            assert trusted_ == by_state[state][1], kubeconfig
        assert answers(replace(former, outputs=world.access().outputs)) == "" or state.endswith(" 2")
        # A worker that is one step behind.
        client.CoreV1Api(far.access().api()).read_node("w-site", _request_timeout=5)

    steps = step_by_step(world, seen_in, far, deployed.make_anew)
    both = ["CN=kubernetes", "CN=kubernetes-2"]
    assert by_state == {
        "kubernetes-ca 1,2": ("CN=kubernetes", both),
        "kubernetes-ca 2,1": ("CN=kubernetes-2", both),
        "kubernetes-ca 2": ("CN=kubernetes-2", both[1:]),
    }
    assert steps == [
        "kubernetes-ca 1,2",
        "configure",
        "every kubelet follows kubernetes-ca 1,2",
        "restart",
        "every pod follows kubernetes-ca 1,2",
        "kubernetes-ca 2,1",
        "configure",
        "every kubelet follows kubernetes-ca 2,1",
        "kubernetes-ca 2",
        "configure",
        "every kubelet follows kubernetes-ca 2",
    ]
    assert rings.built(world.outputs())["kubernetes-ca"] == Ring((2,))
    assert [issuer(each.identity()) for each in workers] == ["CN=kubernetes-2"] * 2
    now = world.access()
    assert answers(now) == ""
    refused = scrape(world, held[0]._replace(authorities=held[-1].authorities))
    assert not [host for host, why in refused.items() if not why], (
        "a relay answers a certificate of the former authority"
    )
    unknown = scrape(world, held[-1]._replace(authorities=held[0].authorities))
    assert not [host for host, why in unknown.items() if "CERTIFICATE_VERIFY_FAILED" not in why]
    assert "401" in answers(replace(now, certificate=former.certificate, key=former.key))
    assert "CERTIFICATE_VERIFY_FAILED" in answers(replace(now, outputs=former.outputs))
    info = client.CoreV1Api(now.api()).read_namespaced_config_map(trusted.INFO, trusted.INFO_NAMESPACE)
    (cluster,) = yaml.safe_load(info.data["kubeconfig"])["clusters"]
    assert subjects(base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()) == both[1:]


def test_a_kubelet_can_report_only_for_its_own_node_and_status_names_those_that_have_not(
    world: Region, workers: tuple[Worker, Worker]
) -> None:
    near, far = workers
    near.follow()
    silent = "kubelets that do not report their authorities: w-site"
    assert key_status(world.engine).unproven == silent
    far.follow()
    assert key_status(world.engine).unproven == ""
    said = far.says()
    assert said["api"] == said["clients"] == [said["client"]]
    assert said["servers"] == [said["serving"]] != said["api"]
    forged = {"metadata": {"annotations": {kubelets.ANNOTATION: "{}"}}}
    with pytest.raises(ApiException, match=r"(?s)403.*is not allowed to modify node"):
        client.CoreV1Api(far.access().api()).patch_node("w-region", forged)
    client.CoreV1Api(far.access().api()).patch_node("w-site", forged)
    assert far.says() == {}


@pytest.mark.soak
def test_a_rotation_can_be_rolled_back_from_its_second_to_last_state(
    world: Region, workers: tuple[Worker, Worker], deployed: Deployed
) -> None:
    _, far = workers
    far.follow()
    old = rings.built(world.outputs())["kubernetes-ca"].at_work
    new = old + 1

    def until_promoted(state: str) -> None:
        if state == f"kubernetes-ca {new},{old}":
            raise Enough

    steps = step_by_step(world, until_promoted, far, pods=None)
    assert steps == [
        f"kubernetes-ca {old},{new}",
        "configure",
        f"every kubelet follows kubernetes-ca {old},{new}",
        f"pods follow kubernetes-ca {old},{new}, as the operator stated",
        f"kubernetes-ca {new},{old}",
    ]
    steps = step_by_step(world, lambda _: None, far, deployed.make_anew, back=True)
    assert steps == [
        f"kubernetes-ca {new},{old}",
        f"every kubelet follows kubernetes-ca {new},{old}",
        f"kubernetes-ca {old},{new}",
        f"every kubelet follows kubernetes-ca {old},{new}",
        f"kubernetes-ca {old}",
        "configure",
        f"every kubelet follows kubernetes-ca {old}",
    ]
    assert rings.built(world.outputs())["kubernetes-ca"] == Ring((old,))
