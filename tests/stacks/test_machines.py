"""The programs by which API servers check whether a machine in the region is the cluster's, against fakes of each cloud."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cluster.spec import Cluster
from network import addresses
from sandbox.lab import store_server
from stacks import machines
from stacks.gcp import machines as of_gcp
from stacks.gcp.tags import base_name
from stacks.lab.provider import MACHINE
from stacks.payloads import API_SERVERS, payloads
from tests.stacks.cloud_api import served
from tests.stacks.test_payloads import SOURCE

MADE = "2026-11-23T01:02:03.456-08:00"
OURS = {"menagerie": "true", "cluster": "lab", "role": "worker", "pool": "cpu"}


@pytest.fixture(scope="module")
def in_region(build: Callable[..., Cluster]) -> Cluster:
    return build({"pools": {"cpu": {"machine": "large", "max": 5}}})


def ask(tmp_path: Path, text: str, name: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "menagerie-machine"
    program.write_text(text)
    return subprocess.run([sys.executable, program, name], check=False, capture_output=True, text=True)


def creation_time(tmp_path: Path, text: str, name: str) -> float | None:
    done = ask(tmp_path, text, name)
    assert done.returncode == 0, done.stderr
    seconds: float | None = json.loads(done.stdout)["made"]
    return seconds


class Google:
    """Metadata and Compute Engine ("Method: instances.get"). denied: its answer to every request about instances."""

    def __init__(self) -> None:
        self.instances: dict[tuple[str, str], dict[str, Any]] = {}
        self.denied = 0
        self.requests: list[str] = []
        self.url = ""

    def answer(self, _method: str, path: str, headers: Any, _body: str) -> tuple[int, str]:
        self.requests.append(path)
        if path.startswith("/computeMetadata/v1/"):
            if headers.get("Metadata-Flavor") != "Google":
                return 403, "Missing Metadata-Flavor:Google header."
            values = {
                "project/project-id": "apes-prod",
                "instance/service-accounts/default/token": '{"access_token": "t0ken"}',
            }
            key = path.removeprefix("/computeMetadata/v1/")
            return (200, values[key]) if key in values else (404, "not found")
        if headers.get("Authorization") != "Bearer t0ken":
            return 401, "who?"
        match = re.fullmatch(r"/compute/v1/projects/apes-prod/zones/([a-z0-9-]+)/instances/([a-z0-9-]+)", path)
        if self.denied or not match:
            return self.denied or 400, "Required 'compute.instances.get' permission"
        if match.groups() not in self.instances:
            return 404, "was not found"
        return 200, json.dumps(self.instances[match.groups()])  # type: ignore[index]


@pytest.fixture
def google() -> Iterator[Google]:
    with served(Google()) as cloud:
        yield cloud


@pytest.fixture
def of_google(google: Google, in_region: Cluster, tmp_path: Path) -> Callable[[str], float | None]:
    text = of_gcp.program(in_region, google.url, google.url)
    return lambda name: creation_time(tmp_path, text, name)


def instance(**changes: Any) -> dict[str, Any]:
    return {"status": "RUNNING", "creationTimestamp": MADE, "labels": OURS, **changes}


def test_an_instance_of_the_clusters_pools_is_known_by_its_name(
    google: Google, in_region: Cluster, of_google: Callable[[str], float | None]
) -> None:
    zone = str(in_region.spec.control_plane.zones[-1])
    google.instances[zone, "lab-cpu-x7k2"] = instance()
    expected = datetime.fromisoformat(MADE).timestamp()
    assert of_google("lab-cpu-x7k2") == expected
    assert of_google("lab-cpu-x7k2.c.apes-prod.internal") == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {**OURS, "cluster": "another"}},
        {"labels": {**OURS, "role": "api-server"}},
        {"labels": {}},
        {"status": "STOPPING"},
        {"status": "TERMINATED"},
    ],
    ids=["of another cluster", "an API server", "somebody's own", "stopping", "stopped"],
)
def test_any_other_instance_is_none_of_its_workers(
    google: Google, in_region: Cluster, of_google: Callable[[str], float | None], changes: dict[str, Any]
) -> None:
    google.instances[str(in_region.spec.control_plane.zones[0]), "lab-cpu-x7k2"] = instance(**changes)
    assert of_google("lab-cpu-x7k2") is None


def test_a_name_without_an_instance_is_no_machine(google: Google, of_google: Callable[[str], float | None]) -> None:
    assert of_google("lab-cpu-x7k2") is None
    before = len(google.requests)
    assert of_google("../../../secrets") is None
    assert len(google.requests) == before


def test_a_denied_request_to_google_reports_the_permission_and_no_machine(
    google: Google, in_region: Cluster, tmp_path: Path
) -> None:
    google.denied = 403
    done = ask(tmp_path, of_gcp.program(in_region, google.url, google.url), "lab-cpu-x7k2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "needed: compute.instances.get on machines of pools" in done.stderr
    assert "t0ken" not in done.stderr


def test_the_permission_covers_only_machines_of_the_clusters_pools(in_region: Cluster) -> None:
    assert of_gcp.PERMISSIONS == ("compute.instances.get",)
    start = base_name(in_region, "cpu")
    assert of_gcp.confined(in_region, ("cpu",)) == (
        'resource.type == "compute.googleapis.com/Instance" && '
        f'(resource.name.extract("/instances/{{name}}").startsWith("{start}-"))'
    )


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    for name in ("lab-region-1", "worker-1"):
        (tmp_path / "hosts" / name).mkdir(parents=True)
        (tmp_path / "hosts" / name / "host.json").write_text("{}")
    return tmp_path / "hosts"


def test_in_a_lab_only_api_servers_learn_from_the_store_when_a_worker_was_created(tmp_path: Path, hosts: Path) -> None:
    policy = tmp_path / "policy.json"
    server = store_server.make("127.0.0.1", 0, policy, hosts)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    text = machines.filled(MACHINE, {"STORE_URL": f"http://127.0.0.1:{server.server_port}"})
    try:
        assert "HTTP 503" in ask(tmp_path, text, "lab-region-1").stderr
        policy.write_text(json.dumps({"127.0.0.1": {"machines": ["lab-region-1", "lab-region-2"]}}))
        seconds = creation_time(tmp_path, text, "lab-region-1")
        assert seconds is not None
        assert abs(time.time() - seconds) < 3600
        assert [creation_time(tmp_path, text, name) for name in ("lab-region-2", "worker-1", "../hosts/worker-1")] == [
            None
        ] * 3
        policy.write_text(json.dumps({"127.0.0.1": {"read": {"join-token": "t"}}}))
        assert "HTTP 403" in ask(tmp_path, text, "lab-region-1").stderr
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_api_servers_have_the_program_if_workers_join_in_the_region(in_region: Cluster, lab: Cluster) -> None:
    for cluster, has in ((in_region, True), (lab, False)):
        by_reader = payloads(cluster, addresses.plan(cluster), SOURCE, machine="#!/bin/sh\necho told\n")
        held = {reader for reader, payload in by_reader.items() if "echo told" in payload.text}
        assert held == ({API_SERVERS} if has else set())
