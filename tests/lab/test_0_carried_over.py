"""A lab built by the last release in which nodes did not have to prove their identity is upgraded to this one, under a workload.

In a separate checkout, as an operator does it: build, check out the new release in the same folder, and follow the
steps in CHANGELOG.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from clients.waiting import wait_until
from tests.lab.probe import probing
from tests.lab.support import ROOT, polling_often

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

FORMER = "0de0dde"
"""The last commit whose workers could take any node's name."""
SITE, REGION = ("worker-1", "worker-2", "worker-3"), "lab-region-1"
ETCDS = tuple(f"etcd-{role}-{number}" for role in ("main", "events") for number in (1, 2, 3))
CONTROLS = tuple(f"M.{number}" for number in range(14, 27))
"""Audit controls that this release added. A lab's buckets have no locks, which M.24 checks."""


@dataclass(frozen=True)
class Checkout:
    root: Path

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def run(self, *arguments: str, code: int | None = 0, timeout_s: float = 1800) -> Any:
        """Run a verb with --json; return what it printed. It must exit with the code, None for any."""
        command = [self.root / "menagerie", *arguments, "--json"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        assert code in (None, done.returncode), (
            f"{shlex.join(arguments)} exited with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return json.loads(done.stdout)

    def inside(self, host: str) -> list[str]:
        """Return the start of a command that runs on a host; valid until its next boot."""
        module = "sandbox.lab.hosts" if (self.root / "sandbox").exists() else "lab.hosts"
        program = f"import json, sys, {module} as hosts; print(json.dumps(hosts.inside(sys.argv[1], [])))"
        command = [self.root / ".venv" / "bin" / "python", "-c", program, host]
        return json.loads(subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout)

    def kubeconfig(self) -> str:
        """Return the operator's kubeconfig."""
        return _printed([str(self.root / "menagerie"), "kubeconfig", "lab"]).strip()

    def kubectl(self, *arguments: str) -> None:
        """Run kubectl as the operator."""
        command = [str(self.root / ".menagerie" / "bin" / "kubectl"), "--kubeconfig", self.kubeconfig(), *arguments]
        subprocess.run(command, check=True)

    def api(self) -> client.ApiClient:
        """Return an API client of the operator."""
        return config.new_client_from_config(self.kubeconfig())

    def refresh(self, host: str) -> None:
        """Let a host query its store now."""
        with suppress(subprocess.CalledProcessError):
            ask = [*self.inside(host), "systemctl", "start", "menagerie-refresh.service"]
            subprocess.run(ask, capture_output=True, check=False)


@pytest.fixture(scope="module")
def checkout(before: dict[str, set[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    if subprocess.run(["git", "cat-file", "-e", f"{FORMER}^{{commit}}"], cwd=ROOT, check=False).returncode:
        pytest.skip(f"commit {FORMER} isn't in this clone: git fetch --unshallow")
    checkout_ = Checkout(tmp_path_factory.mktemp("carried") / "checkout")
    subprocess.run(["git", "clone", "-q", "--no-checkout", ROOT, checkout_.root], check=True)
    checkout_.git("checkout", "-q", "--detach", FORMER)
    try:
        yield checkout_
    finally:
        subprocess.run([checkout_.root / "menagerie", "destroy", "lab", "--yes"], stdin=subprocess.DEVNULL, check=False)


def test_a_cluster_of_the_former_release_is_upgraded_without_an_outage(checkout: Checkout) -> None:
    now = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checkout.run("up", "lab", "--yes")
    nodes = {node.metadata.name: node.metadata.uid for node in _nodes(checkout)}
    assert set(nodes) == {*SITE, REGION}
    inside = checkout.inside(SITE[0])
    with probing(checkout.api(), inside) as probe:
        # In a lab `up` replaces it as it is, and its pods with it (docs/how-to/upgrade.md).
        checkout.kubectl("drain", REGION, "--ignore-daemonsets", "--delete-emptydir-data")
        checkout.git("checkout", "-q", "--detach", now.strip())
        checkout.run("up", "lab", "--yes")
        checkout.kubectl("uncordon", REGION)
        checkout.run("configure", "lab")
        assert checkout.run("status", "lab", "keys", code=1)["rings"]["kubelet-serving-ca"]["state"] != "stable"
        with polling_often(checkout.refresh, ("api-1", "api-2", *ETCDS, REGION)):
            _rotate(checkout)
        assert checkout.run("status", "lab", "keys")["rings"]["kubelet-serving-ca"]["state"] == "stable"
    assert probe.requests > 500
    assert len(probe.failures) <= probe.requests // 100, (probe.requests, probe.failures)
    assert {node.metadata.name: node.metadata.uid for node in _nodes(checkout)} == nodes


def test_it_then_equals_what_this_release_builds(checkout: Checkout) -> None:
    assert checkout.run("up", "lab", "--dry-run")["changed"] == 0
    assert checkout.run("status", "lab")["ok"]
    expected = dict.fromkeys(CONTROLS, "pass") | {"M.24": "not seen"}
    # API servers report changed authorities within a minute.
    wait_until(lambda: str({*_audited(checkout).items()} - {*expected.items()} or ""), 120, print)


def _audited(checkout: Checkout) -> dict[str, str]:
    statuses = {result["id"]: result["status"] for result in checkout.run("audit", "lab", code=None)["results"]}
    return {name: statuses[name] for name in CONTROLS}


def _rotate(checkout: Checkout) -> None:
    """Rotate as an operator does: a run ends when workers at the site must be configured, and the next one continues."""
    for _ in ("signed by the new one", "no longer trusting the former one"):
        waiting = checkout.run("keys", "rotate", "lab", "kubelet-serving-ca", code=1)
        assert waiting["error"]["code"] == "kubelets-behind", waiting
        checkout.run("configure", "lab")
    checkout.run("keys", "rotate", "lab", "kubelet-serving-ca")


def _printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _nodes(checkout: Checkout) -> list[Any]:
    return list(client.CoreV1Api(checkout.api()).list_node().items)
