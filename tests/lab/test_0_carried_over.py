"""A lab that the release before nodes had to prove themselves built is carried over by this one, under a workload.

In a checkout of its own, as an operator does it: build, check out the new release in the same folder, and go through
what CHANGELOG asks for.
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
from tests.lab.support import ROOT, asking_often

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

FORMER = "0de0dde"
"""The last commit whose workers could take any node's name."""
SITE, REGION = ("worker-1", "worker-2", "worker-3"), "lab-region-1"
ETCDS = tuple(f"etcd-{role}-{number}" for role in ("main", "events") for number in (1, 2, 3))
CONTROLS = tuple(f"M.{number}" for number in range(14, 27))
"""What this release added to the audit. A lab's buckets have no locks, which M.24 is about."""


@dataclass(frozen=True)
class Checkout:
    root: Path

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def run(self, *words: str, code: int | None = 0, timeout_s: float = 1800) -> Any:
        """A verb with --json; what it printed. It must end with the code, None for any."""
        command = [self.root / "menagerie", *words, "--json"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        assert code in (None, done.returncode), (
            f"{shlex.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return json.loads(done.stdout)

    def inside(self, host: str) -> list[str]:
        """The start of a command that runs on a host, until its next boot."""
        module = "sandbox.lab.hosts" if (self.root / "sandbox").exists() else "lab.hosts"
        program = f"import json, sys, {module} as hosts; print(json.dumps(hosts.inside(sys.argv[1], [])))"
        command = [self.root / ".venv" / "bin" / "python", "-c", program, host]
        return json.loads(subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout)

    def kubeconfig(self) -> str:
        """The operator's."""
        return _printed([str(self.root / "menagerie"), "kubeconfig", "lab"]).strip()

    def kubectl(self, *words: str) -> None:
        """As the operator."""
        command = [str(self.root / ".menagerie" / "bin" / "kubectl"), "--kubeconfig", self.kubeconfig(), *words]
        subprocess.run(command, check=True)

    def api(self) -> client.ApiClient:
        """As the operator."""
        return config.new_client_from_config(self.kubeconfig())

    def refresh(self, host: str) -> None:
        """Have a host ask its store now."""
        with suppress(subprocess.CalledProcessError):
            ask = [*self.inside(host), "systemctl", "start", "menagerie-refresh.service"]
            subprocess.run(ask, capture_output=True, check=False)


@pytest.fixture(scope="module")
def checkout(before: dict[str, set[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    if subprocess.run(["git", "cat-file", "-e", f"{FORMER}^{{commit}}"], cwd=ROOT, check=False).returncode:
        pytest.skip(f"commit {FORMER} isn't in this clone: git fetch --unshallow")
    made = Checkout(tmp_path_factory.mktemp("carried") / "checkout")
    subprocess.run(["git", "clone", "-q", "--no-checkout", ROOT, made.root], check=True)
    made.git("checkout", "-q", "--detach", FORMER)
    try:
        yield made
    finally:
        subprocess.run([made.root / "menagerie", "destroy", "lab", "--yes"], stdin=subprocess.DEVNULL, check=False)


def test_a_cluster_of_the_former_release_is_carried_over_without_a_stop(checkout: Checkout) -> None:
    now = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checkout.run("up", "lab", "--yes")
    nodes = {each.metadata.name: each.metadata.uid for each in _nodes(checkout)}
    assert set(nodes) == {*SITE, REGION}
    there = checkout.inside(SITE[0])
    with probing(checkout.api(), there) as probe:
        # In a lab `up` makes it anew as it stands, and its pods with it (docs/how-to/upgrade.md).
        checkout.kubectl("drain", REGION, "--ignore-daemonsets", "--delete-emptydir-data")
        checkout.git("checkout", "-q", "--detach", now.strip())
        checkout.run("up", "lab", "--yes")
        checkout.kubectl("uncordon", REGION)
        checkout.run("configure", "lab")
        assert checkout.run("status", "lab", "keys", code=1)["rings"]["kubelet-serving-ca"]["state"] != "stable"
        with asking_often(checkout.refresh, ("api-1", "api-2", *ETCDS, REGION)):
            _rotate(checkout)
        assert checkout.run("status", "lab", "keys")["rings"]["kubelet-serving-ca"]["state"] == "stable"
    assert probe.asked > 500
    assert len(probe.failures) <= probe.asked // 100, (probe.asked, probe.failures)
    assert {each.metadata.name: each.metadata.uid for each in _nodes(checkout)} == nodes


def test_it_is_then_what_this_release_builds(checkout: Checkout) -> None:
    assert checkout.run("up", "lab", "--dry-run")["changed"] == 0
    assert checkout.run("status", "lab")["ok"]
    wanted = dict.fromkeys(CONTROLS, "pass") | {"M.24": "not seen"}
    # API servers tell of changed authorities within a minute.
    wait_until(lambda: str({*_audited(checkout).items()} - {*wanted.items()} or ""), 120, print)


def _audited(checkout: Checkout) -> dict[str, str]:
    found = {each["id"]: each["status"] for each in checkout.run("audit", "lab", code=None)["results"]}
    return {name: found[name] for name in CONTROLS}


def _rotate(checkout: Checkout) -> None:
    """As an operator does: a run ends where workers at the site wait to be taken along, and the next one goes on."""
    for _ in ("made by the new one", "not knowing the former one"):
        behind = checkout.run("keys", "rotate", "lab", "kubelet-serving-ca", code=1)
        assert behind["error"]["code"] == "kubelets-behind", behind
        checkout.run("configure", "lab")
    checkout.run("keys", "rotate", "lab", "kubelet-serving-ca")


def _printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _nodes(checkout: Checkout) -> list[Any]:
    return list(client.CoreV1Api(checkout.api()).list_node().items)
