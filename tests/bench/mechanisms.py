"""Mechanisms that start pods all together or not at all. Each runs a scheduler and defines the objects of a gang.

Kubernetes' own PodGroup, as in the cluster's configuration; the Coscheduling plugin of scheduler-plugins, whose newest
available release is built on Kubernetes 1.34; and Kueue, which admits a whole Job and leaves its pods to the ordinary
scheduler.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clients.waiting import wait_until
from cluster import versions
from cluster.errors import TimedOutError
from cluster.project import ROOT
from components.control_plane import scheduler
from components.scheduling import gangs
from network.addresses import plan
from stacks.certificates import Request, issue, new_authority
from tests.bench.calls import Api
from tests.bench.load import NAMESPACE
from tests.bench.loopback import Loopback, LoopbackError, Shape, cluster_of, companions, started
from tests.bench.loopback_files import ADMIN
from tools import build, golang

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
WAITS_S = 60
"""How long Coscheduling keeps room for pods that wait for the rest of their gang: the default of its PodGroups."""
_COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
_KUEUE = "kueue.x-k8s.io/v1beta2"
_QUEUE = "all"
_METRICS, _HEALTH = "/etc/kueue/metrics/certs", 18081


@dataclass(frozen=True)
class Gang:
    """A number of pods with a number of GPUs each. A gang may span several hosts."""

    name: str
    members: int
    gpus: int


def pod_spec(gpus: int) -> dict[str, Any]:
    """Return the spec of a pod for the profile `pack`, with 8 CPUs and 64 GiB per GPU."""
    limits = {"cpu": str(8 * gpus), "memory": f"{64 * gpus}Gi", "nvidia.com/gpu": str(gpus)}
    container = {"name": "trainer", "image": "registry.invalid/trainer:1", "resources": {"limits": limits}}
    return {"schedulerName": "pack", "terminationGracePeriodSeconds": 0, "containers": [container]}


class Native:
    """Kubernetes' own PodGroup."""

    name = "PodGroup"

    def made(self, gang: Gang) -> list[tuple[str, dict[str, Any]]]:
        """Return (path, object) of what to create for a gang of a Job, in order."""
        group = gangs.pod_group(versions.KUBERNETES, gang.name, gang.members)
        job = gangs.job(gang.name, gang.members, pod_spec(gang.gpus))
        del job["metadata"]["labels"]
        return [(f"/apis/{group['apiVersion']}/namespaces/{NAMESPACE}/podgroups", group), (JOBS, job)]

    @contextmanager
    def at_work(self, plane: Loopback, shape: Shape) -> Iterator[None]:
        """Run its scheduler and its other programs for the length of a block."""
        with _scheduler(plane, shape, "kube-scheduler"):
            yield


class Coscheduling(Native):
    """The plugin of scheduler-plugins."""

    name = "Coscheduling"

    def made(self, gang: Gang) -> list[tuple[str, dict[str, Any]]]:
        spec = {"minMember": gang.members, "scheduleTimeoutSeconds": WAITS_S}
        group = {"apiVersion": _COSCHEDULING, "kind": "PodGroup", "metadata": {"name": gang.name}, "spec": spec}
        job: Any = _plain(gang)
        job["spec"]["template"]["metadata"] = {"labels": {"scheduling.x-k8s.io/pod-group": gang.name}}
        return [(f"/apis/{_COSCHEDULING}/namespaces/{NAMESPACE}/podgroups", group), (JOBS, job)]

    @contextmanager
    def at_work(self, plane: Loopback, shape: Shape) -> Iterator[None]:
        _definitions(plane, _source("scheduler-plugins") / "manifests" / "coscheduling", "crd.yaml")
        with _scheduler(plane, shape, "coscheduler"):
            yield


class Kueue(Native):
    """Kueue with a quota of all GPUs. It evicts gangs that are not whole in time."""

    name = "Kueue"

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus

    def made(self, gang: Gang) -> list[tuple[str, dict[str, Any]]]:
        job = _plain(gang)
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": _QUEUE}
        # Kueue's webhook would set this, but on loopback it is not called.
        job["spec"]["suspend"] = True
        return [(JOBS, job)]

    @contextmanager
    def at_work(self, plane: Loopback, shape: Shape) -> Iterator[None]:
        _definitions(plane, _source("kueue") / "config" / "components" / "crd" / "bases", "*.yaml")
        with ExitStack() as ends:
            ends.enter_context(_scheduler(plane, shape, "kube-scheduler"))
            ends.enter_context(self._controller(plane))
            self._queues(plane)
            yield

    @contextmanager
    def _controller(self, plane: Loopback) -> Iterator[None]:
        home = plane.folder / "kueue"
        home.mkdir()
        signed = issue(new_authority("kueue"), Request("kueue", dns_names=("kueue",), usages=("server",)))
        (home / "tls.crt").write_text(signed.certificate)
        (home / "tls.key").write_text(signed.private_key)
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{plane.address}:{_HEALTH}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": plane.address, "port": 19443, "certDir": str(home)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 200, "burst": 400},
            "waitForPodsReady": {"timeout": f"{WAITS_S}s", "recoveryTimeout": f"{WAITS_S}s"},
            "integrations": {"frameworks": ["batch/job"]},
        }
        (home / "config.yaml").write_text(yaml.safe_dump(config))
        words = [
            str(build.ensure(["kueue"])["kueue"]),
            f"--config={home / 'config.yaml'}",
            f"--kubeconfig={plane.kubeconfig(ADMIN.name)}",
            "--feature-gates=VisibilityOnDemand=false",
        ]
        # It reads a metrics certificate there even if it serves no metrics, so it gets a private /etc with one.
        own_etc = f'mount -t tmpfs none /etc && mkdir -p {_METRICS} && cp {home}/tls.* {_METRICS} && exec "$@"'
        log = plane.folder / "kueue.log"
        with started(["unshare", "--mount", "/bin/sh", "-ec", own_etc, "kueue", *words], log) as process:
            until_ready(process, f"http://{plane.address}:{_HEALTH}/readyz", log)
            yield

    def _queues(self, plane: Loopback) -> None:
        resources: list[dict[str, Any]] = [
            {"name": "nvidia.com/gpu", "nominalQuota": self._gpus},
            {"name": "cpu", "nominalQuota": 10**6},
            {"name": "memory", "nominalQuota": "1000000Gi"},
        ]
        flavor = {"name": _QUEUE, "resources": resources}
        group = {"coveredResources": [each["name"] for each in resources], "flavors": [flavor]}
        shared = {"namespaceSelector": {}, "resourceGroups": [group]}
        _create(plane, f"/apis/{_KUEUE}/resourceflavors", _kueue_object("ResourceFlavor", {}))
        _create(plane, f"/apis/{_KUEUE}/clusterqueues", _kueue_object("ClusterQueue", shared))
        queue = _kueue_object("LocalQueue", {"clusterQueue": _QUEUE})
        _create(plane, f"/apis/{_KUEUE}/namespaces/{NAMESPACE}/localqueues", queue)


def until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until a program is ready. LoopbackError with the end of its log if it exits, or is not ready within a minute."""

    def missing() -> str:
        last = f"{log.stem} is not ready: {log.read_text(errors='replace')[-1000:]}"
        if process.poll() is not None:
            raise LoopbackError(last)
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return ""
        return last

    _until(missing)


def _until(missing: Callable[[], str]) -> None:
    """Wait until nothing is missing. LoopbackError with what still is after a minute."""
    try:
        wait_until(missing, 60, lambda _: None, 0.5)
    except TimedOutError as error:
        raise LoopbackError(str(error)) from None


def _kueue_object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _KUEUE, "kind": kind, "metadata": {"name": _QUEUE}, "spec": spec}


def _plain(gang: Gang) -> dict[str, Any]:
    """Return the same Job without Kubernetes' own gang."""
    job = gangs.job(gang.name, gang.members, pod_spec(gang.gpus))
    del job["metadata"]["labels"], job["spec"]["template"]["spec"]["schedulingGroup"]
    return job


@contextmanager
def _scheduler(plane: Loopback, shape: Shape, program: str) -> Iterator[None]:
    cluster = cluster_of(shape)
    words = companions(shape, cluster, plan(cluster), plane.folder)["kube-scheduler"]
    if program == "coscheduler":
        words = [word for word in words if not word.startswith("--feature-gates=")]
        _with_plugin(plane.folder / scheduler.CONFIG.lstrip("/"))
    # It runs without leader election: a killed leader would still hold its lease for a while, and a late renewal would end it.
    words = [word.replace("--leader-elect=true", "--leader-elect=false") for word in words]
    with started([str(build.ensure([program])[program]), *words], plane.folder / f"{program}.log"):
        yield


def _with_plugin(config: Path) -> None:
    document = yaml.safe_load(config.read_text())
    plugin = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}
    queue = {"queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}
    for profile in document["profiles"]:
        profile["plugins"] = {**profile.get("plugins", {}), **plugin, **queue}
        args = {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": WAITS_S}}
        profile["pluginConfig"] = [*profile.get("pluginConfig", []), args]
    config.write_text(yaml.safe_dump(document))


def _source(module: str) -> Path:
    """Return the source folder of the pinned module, which has its definitions."""
    go = golang.find(())
    words = [str(go.program), "list", "-m", "-f", "{{.Dir}}", f"sigs.k8s.io/{module}"]
    done = subprocess.run(words, cwd=ROOT / "tools" / module, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _definitions(plane: Loopback, folder: Path, pattern: str) -> None:
    """Create the CustomResourceDefinitions of some files, each with only its newest version: others need a conversion webhook.

    Return when they are served, because a program that asks for one earlier exits.
    """
    paths = []
    for file in sorted(folder.glob(pattern)):
        for definition in yaml.safe_load_all(file.read_text()):
            if definition and definition["kind"] == "CustomResourceDefinition":
                newest = definition["spec"]["versions"][-1]
                definition["spec"]["versions"] = [{**newest, "served": True, "storage": True}]
                definition["spec"].pop("conversion", None)
                _create(plane, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
                paths.append(
                    f"/apis/{definition['spec']['group']}/{newest['name']}/{definition['spec']['names']['plural']}"
                )
    with Api(plane.login(ADMIN.name)) as api:
        _until(lambda: " and ".join(f"{path} is not served" for path in paths if api.call("GET", path)[0] != 200))


def _create(plane: Loopback, path: str, document: dict[str, Any]) -> None:
    """Create an object when its kind is served."""

    def missing() -> str:
        status, reply = api.call("POST", path, document)
        return "" if status in (201, 409) else f"POST {path}: {status} {json.loads(reply).get('message', '')[:500]}"

    with Api(plane.login(ADMIN.name)) as api:
        _until(missing)
