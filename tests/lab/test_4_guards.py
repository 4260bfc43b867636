"""What keeps a lab, its keys and other people's labs safe; and recovery of a dead lab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.lab import cgroups, hosts, state
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


def test_another_checkout_is_refused_with_the_labs_owner(lab: Run, tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    foreign = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "up", "lab", "--yes"],
        cwd=tmp_path,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(tmp_path), "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert foreign.returncode == 3, foreign.stderr
    assert str(ROOT) in foreign.stderr
    assert menagerie("status", "lab").code == 0


def test_no_key_is_in_clear_in_the_state(lab: Run) -> None:
    kept = [path for path in (ROOT / ".menagerie").rglob("*") if path.is_file() and not path.is_symlink()]
    texts = [path.read_text(errors="replace") for path in kept]
    assert any("BEGIN CERTIFICATE" in text for text in texts)
    assert not any("PRIVATE KEY" in text for text in texts)


def test_no_command_leaves_a_key_in_a_file_of_this_machine(lab: Run) -> None:
    since = state.folder("owner.json").stat().st_mtime
    menagerie("status", "lab")
    places = [*Path("/tmp").glob("*"), *Path("/dev/shm").rglob("*"), *Path("/run/menagerie").rglob("*")]
    new = [path for path in places if path.is_file() and path.stat().st_mtime > since and path.name != "kubeconfig"]
    assert [path for path in new if "PRIVATE KEY" in path.read_text(errors="replace")] == []


def test_hosts_have_only_their_own_keys(lab: Run) -> None:
    def keys(host: str) -> set[str]:
        files = hosts.run(host, ["sh", "-c", "grep -rl 'PRIVATE KEY' /etc /var/lib/kubelet/pki 2>/dev/null"])
        return {Path(line).name for line in files.stdout.splitlines() if "/ssh/" not in line}

    assert keys("etcd-main-1") == {"server.key", "peer.key"}
    assert keys("etcd-events-1") == {"server.key", "peer.key"}
    assert not keys("worker-1") & {"ca.key", "sa.key", "front-proxy-ca.key"}
    assert {"ca.key", "sa.key", "front-proxy-ca.key"} <= keys("api-1")


def test_nobody_can_log_in_to_a_cloud_host(lab: Run) -> None:
    listening = hosts.run("api-1", ["ss", "-Hltn"]).stdout
    assert ":6443" in listening
    assert ":22 " not in listening


@pytest.mark.soak
def test_a_lab_whose_processes_all_died_is_brought_up_again(lab: Run) -> None:
    cgroups.kill(f"{cgroups.ROOT}/{state.lab_id()}")
    assert not state.is_live(state.lab_id())
    again = menagerie("up", "lab", "--json")
    assert again.code == 0, again.err
    assert again.json["status"]["ok"]
