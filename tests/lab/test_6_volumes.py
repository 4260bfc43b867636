"""Volume drivers: a lab has none, but its API server is the same as in a cloud's cluster, with all its rules."""

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
    """kubectl("get", "nodes"): returns the output. The drivers' namespace exists meanwhile: a dry run creates none."""
    path = menagerie("kubeconfig", "lab").out.strip()

    def run(*arguments: str, given: Any = None) -> str:
        command = [ROOT / ".menagerie" / "bin" / "kubectl", "--kubeconfig", path, *arguments]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (namespace,) = (item["object"] for item in applied(CLOUDS[0]) if item["object"]["kind"] == "Namespace")
    run("create", "-f", "-", given=namespace)
    yield run
    run("delete", "namespace", NAMESPACE)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_api_accepts_every_object_of_a_clouds_drivers(kubectl: Kubectl, cloud: Cloud) -> None:
    objects = [item["object"] for item in applied(cloud)]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    options = (
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--field-manager=menagerie",
        "--force-conflicts",
    )
    output = kubectl("apply", *options, "-f", "-", given=listed)
    assert output.count("serverside-applied (server dry run)") == len(objects) > 10
