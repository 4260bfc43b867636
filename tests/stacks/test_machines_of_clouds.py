"""The programs by which API servers ask AWS and Azure whether a machine is the cluster's, against their documented HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from cluster.spec import Cluster
from components.control_plane import audit_log
from stacks.aws import machines as of_aws
from stacks.aws.tags import named
from stacks.azure import machines as of_azure
from stacks.azure.tags import host_prefix
from tests.stacks.cloud_api import served

ROOT = Path(__file__).resolve().parents[2]
ID = "i-0123456789abcdef0"
LAUNCHED, STARTED_AGAIN = "2026-11-20T08:00:00.000Z", "2026-11-22T09:30:00.000Z"
CREATED = "2026-11-20T08:00:00.1234567+00:00"


class Cloud:
    """A cloud's metadata service and its API. denied: the API's answer to everything. requests: what it was asked for."""

    url = ""
    denied: tuple[int, str] | None = None

    def __init__(self) -> None:
        self.requests: list[str] = []

    def answer(self, method: str, path: str, headers: Any, body: str) -> tuple[int, str]:
        raise NotImplementedError


class Amazon(Cloud):
    """ "Retrieve security credentials from instance metadata", "DescribeInstances" with its filters."""

    def __init__(self) -> None:
        super().__init__()
        self.instances: dict[str, str] = {}

    def answer(self, method: str, path: str, headers: Any, body: str) -> tuple[int, str]:
        if path == "/latest/api/token":
            return 200, "session"
        if path.startswith("/latest/"):
            if headers.get("X-aws-ec2-metadata-token") != "session":
                return 401, "no session"
            role = {"AccessKeyId": "AKIA", "SecretAccessKey": "s3cret", "Token": "t0ken"}
            return 200, json.dumps(role) if path.endswith("/api-servers") else "api-servers"
        form = {key: value[0] for key, value in urllib.parse.parse_qs(body).items()}
        self.requests.append(form["Filter.1.Value.1"])
        if headers.get("Authorization", "").rpartition("=")[2] != signature(headers, body):
            return 403, "<Response><Errors><Error><Code>SignatureDoesNotMatch</Code></Error></Errors></Response>"
        if self.denied:
            return self.denied
        assert (form["Action"], form["Version"], form["Filter.1.Name"]) == (
            "DescribeInstances",
            "2016-11-15",
            "instance-id",
        )
        instance_xml = self.instances.get(form["Filter.1.Value.1"], "")
        item = (
            f"<item><reservationId>r-1</reservationId><instancesSet>{instance_xml}</instancesSet></item>"
            if instance_xml
            else ""
        )
        return 200, (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<requestId>1</requestId><reservationSet>{item}</reservationSet></DescribeInstancesResponse>"
        )


def signature(headers: Any, body: str) -> str:
    """Return the signature that AWS's own library computes for the request, with the host's role for EC2."""
    names = headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names)
    region = headers["Authorization"].split("/")[2]
    request = AWSRequest("POST", "http://ec2/", {name: headers[name] for name in names}, body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIA", "s3cret", "t0ken"), "ec2", region)
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


class Microsoft(Cloud):
    """IMDS and "Virtual Machine Scale Set VMs - Get"."""

    def __init__(self) -> None:
        super().__init__()
        self.machines: dict[str, dict[str, Any]] = {}

    def answer(self, method: str, path: str, headers: Any, body: str) -> tuple[int, str]:
        where, _, query = path.partition("?")
        parameters = {key: value[0] for key, value in urllib.parse.parse_qs(query).items()}
        if where.startswith("/metadata/"):
            if headers.get("Metadata") != "true":
                return 400, "Required metadata header not specified"
            if where == "/metadata/instance/compute/subscriptionId":
                return 200, "sub-1"
            right = (
                parameters["client_id"] == "api-servers-id"
                and parameters["resource"] == "https://management.azure.com/"
            )
            return (200, '{"access_token": "t0ken"}') if right else (400, "Identity not found")
        self.requests.append(where)
        if headers.get("Authorization") != "Bearer t0ken":
            return 401, "who?"
        if self.denied:
            return self.denied
        machine_ = self.machines.get(where)
        return (200, json.dumps(machine_)) if machine_ else (404, '{"error": {"code": "ResourceNotFound"}}')


@pytest.fixture
def amazon() -> Iterator[Cloud]:
    with served(Amazon()) as cloud:
        yield cloud


@pytest.fixture
def microsoft() -> Iterator[Cloud]:
    with served(Microsoft()) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def in_region(build: Callable[..., Cluster]) -> Cluster:
    return build({"pools": {"cpu": {"machine": "large", "max": 5}}})


@pytest.fixture
def ask(tmp_path: Path) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Run the program as the approver does, next to the library as on a host."""
    (tmp_path / "menagerie_host").symlink_to(ROOT / "components" / "control_plane" / "host")
    (tmp_path / audit_log.SECRET).write_text('{"client_id": "api-servers-id", "kind": "azure"}')

    def run(text: str, name: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program").write_text(text)
        environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(tmp_path)}
        command = [sys.executable, "-B", str(tmp_path / "program"), name]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    return run


Made = Callable[[str], float | None]


def creation_time(done: subprocess.CompletedProcess[str]) -> float | None:
    assert done.returncode == 0, done.stderr
    seconds: float | None = json.loads(done.stdout)["made"]
    return seconds


@pytest.fixture
def on_aws(amazon: Amazon, in_region: Cluster, ask: Any, tmp_path: Path) -> Made:
    text = of_aws.program(in_region, amazon.url, amazon.url, str(tmp_path))
    return lambda name: creation_time(ask(text, name))


@pytest.fixture
def on_azure(microsoft: Microsoft, in_region: Cluster, ask: Any, tmp_path: Path) -> Made:
    text = of_azure.program(in_region, microsoft.url, microsoft.url, str(tmp_path))
    return lambda name: creation_time(ask(text, name))


def instance(of: Cluster, state: str = "running", launched: str = LAUNCHED, **changed: str) -> str:
    group = named(of, "pool-cpu", "launch_template") + "-1a2b3c4"
    own = {"menagerie": "true", "cluster": of.name, "role": "workers-cpu", "aws:autoscaling:groupName": group}
    tags = {key: changed.get(key.rpartition(":")[2], value) for key, value in own.items()}
    tag_xml = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags.items())
    attached = f"<attachment><deviceIndex>0</deviceIndex><attachTime>{LAUNCHED}</attachTime></attachment>"
    return (
        f"<item><instanceId>{ID}</instanceId><instanceState><code>16</code><name>{state}</name></instanceState>"
        f"<launchTime>{launched}</launchTime><tagSet>{tag_xml}</tagSet>"
        f"<networkInterfaceSet><item>{attached}</item></networkInterfaceSet></item>"
    )


@pytest.mark.parametrize("state", ["pending", "running"])
@pytest.mark.parametrize("launched", [LAUNCHED, STARTED_AGAIN], ids=["once", "stopped and started"])
def test_an_instance_of_the_clusters_groups_is_as_old_as_its_first_launch(
    amazon: Amazon, in_region: Cluster, on_aws: Made, state: str, launched: str
) -> None:
    """A machine that was restarted has had its Node since before: its name is not available to others."""
    amazon.instances[ID] = instance(in_region, state, launched)
    assert on_aws(ID) == datetime.fromisoformat(LAUNCHED).timestamp()


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": "another"},
        {"menagerie": "false"},
        {"role": "api-servers"},
        {"role": "workers-gpu"},
        {"groupName": "somebodys-own"},
        {"state": "shutting-down"},
        {"state": "terminated"},
        {"state": "stopped"},
    ],
    ids=lambda changes: "-".join(*changes.items()),
)
def test_any_other_instance_is_none_of_its_workers(
    amazon: Amazon, in_region: Cluster, on_aws: Made, changes: dict[str, str]
) -> None:
    amazon.instances[ID] = instance(in_region, **changes)
    assert on_aws(ID) is None


@pytest.mark.parametrize(
    "name", [f"{ID}.eu-central-1.compute.internal", f"{ID}x", "worker-1", "i-*", "../i-00000000", f"{ID}&Action=x"]
)
def test_a_name_in_another_format_is_not_looked_up(amazon: Amazon, in_region: Cluster, on_aws: Made, name: str) -> None:
    amazon.instances[ID] = instance(in_region)
    assert on_aws(name) is None
    assert not amazon.requests


def test_an_unknown_instance_is_no_machine(amazon: Amazon, on_aws: Made) -> None:
    assert on_aws("i-0fedcba9876543210") is None
    assert amazon.requests == ["i-0fedcba9876543210"]


@pytest.mark.parametrize(
    ("denied", "message"),
    [
        ((403, "<Code>UnauthorizedOperation</Code>"), "needed: ec2:DescribeInstances"),
        ((503, "<Code>RequestLimitExceeded</Code>"), "HTTP 503"),
        ((200, "<html>"), "ParseError"),
    ],
)
def test_no_machine_is_recognised_if_ec2_fails(
    amazon: Amazon, in_region: Cluster, ask: Any, tmp_path: Path, denied: tuple[int, str], message: str
) -> None:
    amazon.instances[ID], amazon.denied = instance(in_region), denied
    done = ask(of_aws.program(in_region, amazon.url, amazon.url, str(tmp_path)), ID)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert not any(secret in done.stderr for secret in ("t0ken", "s3cret"))


def place(cluster: Cluster, number: int) -> str:
    group = f"/subscriptions/sub-1/resourceGroups/{cluster.name}_workers"
    return f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool-cpu/virtualMachines/{number}"


def machine(name: str, **changes: str) -> dict[str, Any]:
    properties = {"osProfile": {"computerName": name}, "provisioningState": "Succeeded", "timeCreated": CREATED}
    return {"instanceId": "37", "properties": {**properties, **changes}}


def test_a_machine_of_a_scale_set_is_found_by_the_number_in_its_name(
    microsoft: Microsoft, in_region: Cluster, on_azure: Made
) -> None:
    name = f"{host_prefix('cpu')}000011"
    microsoft.machines[place(in_region, 37)] = machine(name)
    assert on_azure(name) == datetime.fromisoformat(CREATED).timestamp()
    assert microsoft.requests == [place(in_region, 37)]


@pytest.mark.parametrize("state", ["Deleting", "Failed"])
def test_a_machine_that_is_deleted_or_failed_is_no_machine(
    microsoft: Microsoft, in_region: Cluster, on_azure: Made, state: str
) -> None:
    name = f"{host_prefix('cpu')}000011"
    microsoft.machines[place(in_region, 37)] = machine(name, provisioningState=state)
    assert on_azure(name) is None


def test_the_next_name_of_a_scale_set_is_no_machine_yet(
    microsoft: Microsoft, in_region: Cluster, on_azure: Made
) -> None:
    microsoft.machines[place(in_region, 37)] = machine(f"{host_prefix('cpu')}000011")
    assert on_azure(f"{host_prefix('cpu')}000012") is None
    assert microsoft.requests == [place(in_region, 38)]


def test_a_machine_with_another_name_does_not_count(microsoft: Microsoft, in_region: Cluster, on_azure: Made) -> None:
    microsoft.machines[place(in_region, 37)] = machine("gpu-000011")
    assert on_azure(f"{host_prefix('cpu')}000011") is None


@pytest.mark.parametrize(
    "name", ["worker-1", "{}0000110", "x{}000011", "gpu-000011", "{}../../", "{}00001\u0661", "{}"]
)
def test_a_name_that_no_pool_uses_is_not_looked_up(microsoft: Microsoft, on_azure: Made, name: str) -> None:
    assert on_azure(name.format(host_prefix("cpu"))) is None
    assert not microsoft.requests


@pytest.mark.parametrize(
    ("denied", "message"),
    [
        ((403, "AuthorizationFailed"), "needed: Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read"),
        ((500, "InternalServerError"), "HTTP 500"),
        ((200, "<html>"), "JSONDecodeError"),
    ],
)
def test_no_machine_is_recognised_if_azure_fails(
    microsoft: Microsoft, in_region: Cluster, ask: Any, tmp_path: Path, denied: tuple[int, str], message: str
) -> None:
    microsoft.denied = denied
    done = ask(of_azure.program(in_region, microsoft.url, microsoft.url, str(tmp_path)), f"{host_prefix('cpu')}000011")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "t0ken" not in done.stderr
