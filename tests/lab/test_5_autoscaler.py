"""A pool of real hosts grows for a job and shrinks when it is done: submitted, booted, joined, run, idle, drained, removed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from cluster import versions
from cluster.load import find_cluster, load_cluster
from lab import hosts
from operations.stack import access_to
from operations.waiting import is_ready, wait_until
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

POOL, JOB = "region", "autoscaler-probe"
FIRST, SECOND = "lab-region-1", "lab-region-2"
# Half of the lab's nodes may go within an hour, so one of five may.
SETTINGS = {
    "interval": "5s",
    "settle": "5s",
    "idle": {"cpu": "20s", "gpu": "20s"},
    "boot_timeout": "10m",
    "spot_timeout": "10m",
}


@pytest.fixture(scope="module")
def spec(lab: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lab's own spec with a pool that may grow to two; at the end the lab is as it was."""
    folder = tmp_path_factory.mktemp("specs") / "lab"
    shutil.copytree(ROOT / "inventories" / "lab", folder)
    path = folder / "cluster.yaml"
    text = yaml.safe_load(path.read_text())
    text["pools"][POOL]["max"] = 2
    text["autoscaler"] = SETTINGS
    path.write_text(yaml.safe_dump(text))
    assert menagerie("up", str(path), "--yes", timeout_s=1200).code == 0
    yield str(path)
    hosts.delete(SECOND)
    api = access_to(load_cluster(find_cluster("lab", ROOT))).api()
    for node in client.CoreV1Api(api).list_node().items:
        if node.metadata.name == SECOND:
            client.CoreV1Api(api).delete_node(SECOND)
    assert menagerie("up", "lab", "--yes", timeout_s=1200).code == 0


@pytest.fixture(scope="module")
def api(spec: str) -> client.ApiClient:
    return access_to(load_cluster(Path(spec))).api()


def one_pass(spec: str) -> Any:
    ran = menagerie("autoscaler", "run", spec, "--once", "--json", timeout_s=600)
    assert ran.code == 0, ran.out + ran.err
    return json.loads(ran.out)


def job(api: client.ApiClient, cpu: str) -> None:
    """Two pods, each of which fills more than half of a worker of the region."""
    container = {
        "name": "a",
        "image": f"docker.io/library/busybox:{versions.BUSYBOX}",
        "command": ["sleep", "30"],
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {"restartPolicy": "Never", "nodeSelector": {"menagerie/pool": POOL}, "containers": [container]}
    body = {"metadata": {"name": JOB}, "spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}}}
    client.BatchV1Api(api).create_namespaced_job("default", body)


def test_a_host_boots_for_a_job_and_goes_when_it_is_idle(spec: str, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    cpus = int(float(core.read_node(FIRST).status.allocatable["cpu"].removesuffix("m")) * 0.6)
    unit = "m" if core.read_node(FIRST).status.allocatable["cpu"].endswith("m") else ""
    submitted = time.monotonic()
    job(api, f"{max(cpus, 1)}{unit}")
    try:
        seconds: dict[str, float] = {}

        def missing(what: str, is_there: Any) -> None:
            def look() -> str:
                one_pass(spec)
                return "" if is_there() else f"no {what} yet"

            wait_until(look, 900, lambda _: None, every_s=2)
            seconds[what] = round(time.monotonic() - submitted, 1)

        def ready(name: str) -> bool:
            return any(node.metadata.name == name and is_ready(node) for node in core.list_node().items)

        def ended() -> bool:
            return (client.BatchV1Api(api).read_namespaced_job(JOB, "default").status.succeeded or 0) == 2

        missing("host", lambda: SECOND in hosts.known())
        missing("Ready node", lambda: ready(SECOND))
        missing("end of the job", ended)
        missing("removal", lambda: len({FIRST, SECOND} & set(hosts.known())) == 1)
        missing("end of the node", lambda: sum("lab-region" in n.metadata.name for n in core.list_node().items) == 1)
        print(f"from submitted: {seconds}")
    finally:
        client.BatchV1Api(api).delete_namespaced_job(JOB, "default", propagation_policy="Background")
