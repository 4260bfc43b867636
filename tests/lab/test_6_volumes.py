"""Drivers of volumes: a lab has none, but its API server is the one that a cloud's cluster has, with all of its rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster.spec import Cloud
from components.control_plane.csi.rights import NAMESPACE
from tests.control_plane.csi_support import CLOUDS, applied
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(lab: Run) -> Iterator[Kubectl]:
    """kubectl("get", "nodes"): what it prints. The drivers' namespace is there meanwhile: a dry run makes none."""
    path = menagerie("kubeconfig", "lab").out.strip()

    def run(*words: str, given: Any = None) -> str:
        command = [ROOT / ".menagerie" / "bin" / "kubectl", "--kubeconfig", path, *words]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (namespace,) = (item["object"] for item in applied(CLOUDS[0]) if item["object"]["kind"] == "Namespace")
    run("create", "-f", "-", given=namespace)
    yield run
    run("delete", "namespace", NAMESPACE)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_api_takes_every_object_of_a_cloud_s_drivers(kubectl: Kubectl, cloud: Cloud) -> None:
    things = [item["object"] for item in applied(cloud)]
    listed = {"apiVersion": "v1", "kind": "List", "items": things}
    how = ("--server-side", "--dry-run=server", "--validate=strict", "--field-manager=menagerie", "--force-conflicts")
    said = kubectl("apply", *how, "-f", "-", given=listed)
    assert said.count("serverside-applied (server dry run)") == len(things) > 10
