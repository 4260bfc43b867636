"""The collector on a made-up root folder: what it reports, and what it never reports."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from cluster.audit.controls import controls
from cluster.audit.evidence import Kind, Report, Socket
from cluster.audit.host import evidence as collector
from cluster.audit.programs import collect_command
from cluster.audit.programs import collector as placed
from stacks.certificates import Request, issue, new_authority

KEY = "a2V5IG9mIHRoaXMgdGVzdA=="
ADDRESS = "192.0.2.7"
CA = new_authority("kubernetes")
LEAF = issue(CA, Request("system:kube-scheduler"))
CONFIG = f"""kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox: {{keys: [{{name: key-1, secret: {KEY}}}]}}
  - identity: {{}}
"""
LISTENING = """  sl  local_address rem_address   st tx_queue
   0: 0100007F:2811 00000000:0000 0A 00000000:00000000
   1: 0B004D0A:192B 00000000:0000 0A 00000000:00000000
   2: 0B004D0A:192B 0C004D0A:8000 01 00000000:00000000
"""
TRIE = """Main:
           |-- 10.77.0.0
              /24 link UNICAST
           |-- 10.77.0.11
              /32 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def put(root: Path) -> Callable[..., Path]:
    def write(path: str, text: str = "", mode: int = 0o600) -> Path:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    return write


def run(put: Callable[..., Path], number: int, unit: str, *words: str, cgroup: str = "/system.slice") -> None:
    put(f"/proc/{number}/cmdline", "".join(f"{word}\0" for word in words))
    put(f"/proc/{number}/cgroup", f"0::{cgroup}/{unit}\n")


@pytest.fixture
def api_host(put: Callable[..., Path]) -> None:
    """A small version of an API server's files."""
    run(
        put, 20, "kube-apiserver.service", "/usr/local/bin/kube-apiserver",
        "--authentication-config=/etc/kubernetes/menagerie/authentication.yaml",
        "--encryption-provider-config=/etc/kubernetes/encryption-config.yaml", "--profiling=false",
    )  # fmt: skip
    put("/etc/kubernetes/menagerie/authentication.yaml", "anonymous: {enabled: true}\n")
    put("/etc/kubernetes/encryption-config.yaml", CONFIG)
    put("/etc/kubernetes/pki/ca.crt", CA.certificate, 0o644)
    put("/etc/kubernetes/pki/ca.key", CA.private_key)
    inside = base64.b64encode(LEAF.certificate.encode()).decode()
    secret = base64.b64encode(LEAF.private_key.encode()).decode()
    put("/etc/kubernetes/scheduler.conf", f"client-certificate-data: {inside}\n    client-key-data: {secret}\n")
    put("/proc/net/tcp", LISTENING)
    put("/proc/net/fib_trie", TRIE)


def collected(root: Path, kind: Kind = Kind.API) -> Report:
    return Report.model_validate(collector.collect(kind, root))


@pytest.mark.usefixtures("api_host")
def test_report_has_processes_open_ports_and_files(root: Path) -> None:
    report = collected(root)
    (process,) = report.processes
    assert (process.program, process.unit) == ("kube-apiserver", "kube-apiserver.service")
    assert process.flags["profiling"] == "false"
    assert report.texts == {"/etc/kubernetes/menagerie/authentication.yaml": "anonymous: {enabled: true}\n"}
    assert report.providers == ("secretbox", "identity")
    assert {each.path: each.pem for each in report.certificates} == {
        "/etc/kubernetes/pki/ca.crt": (CA.certificate,),
        "/etc/kubernetes/scheduler.conf": (LEAF.certificate,),
    }
    assert report.listening == (Socket(address="10.77.0.11", port=6443), Socket(address="127.0.0.1", port=10257))
    assert (report.addresses, report.unreadable) == (("10.77.0.11",), ())


@pytest.mark.usefixtures("api_host")
def test_report_has_modes_and_marks_files_with_keys(root: Path) -> None:
    files = collected(root).files
    modes = {path: (file.kind, file.mode, file.secret) for path, file in files.items()}
    assert modes["/etc/kubernetes/pki/ca.key"] == ("file", "0600", True)
    assert modes["/etc/kubernetes/pki/ca.crt"] == ("file", "0644", False)
    assert modes["/etc/kubernetes/scheduler.conf"] == ("file", "0600", True)
    assert modes["/etc/kubernetes/pki"][0] == "folder"
    owner = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert files["/etc/kubernetes/pki/ca.key"].owner.startswith(f"{owner}:")


@pytest.mark.usefixtures("api_host")
def test_report_contains_no_key(root: Path, put: Callable[..., Path]) -> None:
    run(put, 21, "etcd-main.service", "/usr/local/bin/etcd", "--initial-cluster-token=hush", "--key-file=/etc/etcd/k")
    text = json.dumps(collector.collect(Kind.API, root))
    secret = base64.b64encode(LEAF.private_key.encode()).decode()
    body = CA.private_key.splitlines()[1]
    assert [hidden for hidden in (KEY, body, secret, "hush") if hidden in text] == []
    assert "--key-file=/etc/etcd/k" in text


def test_report_has_both_etcds_of_a_host_and_no_programs_of_pods(root: Path, put: Callable[..., Path]) -> None:
    for number, role in ((30, "main"), (31, "events")):
        words = ("/usr/local/bin/etcd", f"--name=etcd-{role}-1", f"--data-dir=/data/{role}")
        run(put, number, f"etcd-{role}.service", *words)
        put(f"/data/{role}/member").parent.chmod(0o700)
    run(put, 32, "cri-containerd-1.scope", "/usr/bin/etcd", "--name=a-users", cgroup="/kubepods.slice")
    run(put, 33, "ssh.service", "/usr/sbin/sshd", "-D")
    report = collected(root, Kind.ETCD)
    assert [process.member for process in report.processes] == ["etcd-main-1", "etcd-events-1"]
    assert report.files["/data/main"].mode == report.files["/data/events"].mode == "0700"


def test_report_lists_unreadable_files_but_not_missing_ones(
    root: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can read everything, so the refusal is simulated."""
    put("/etc/etcd/main/pki/peer.key")
    put("/etc/etcd/main/pki/both.pem")
    (root / "etc/etcd/gone").symlink_to("nowhere")
    opened = Path.open

    def refuse(path: Path, *more: str) -> object:
        if path.name in ("peer.key", "both.pem"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *more)

    monkeypatch.setattr(Path, "open", refuse)
    report = collected(root, Kind.ETCD)
    assert report.unreadable == ("/etc/etcd/main/pki/both.pem: Permission denied",)
    assert report.files["/etc/etcd/main/pki/peer.key"].secret is True


def test_collector_covers_every_file_that_a_control_names() -> None:
    """Folders count if files below them are covered."""
    named = [path for control in controls() if control.files for path in control.files.paths]
    unseen = [
        path for path in named if not any(fnmatchcase(path.replace("*", "x"), pattern) for pattern in collector.FILES)
    ]
    assert (bool(named), unseen) == (True, [])


def in_own_network(command: Sequence[str]) -> str:
    """Return the output of a command in a network with one address. Other tests change the addresses of the machine's."""
    setup = f'ip address add {ADDRESS}/32 dev lo && ip link set lo up && exec "$@"'
    words = ["unshare", *(["--map-root-user"] if os.geteuid() else []), "--net", "sh", "-c", setup, "sh", *command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_collector_runs_as_an_argument_and_as_a_file(tmp_path: Path) -> None:
    by_words = in_own_network(collect_command(Kind.WORKER))
    (tmp_path / "menagerie_evidence.py").write_text(placed().text)
    by_file = in_own_network(["python3", "-I", str(tmp_path / "menagerie_evidence.py"), "worker"])
    first, second = (Report.model_validate_json(text) for text in (by_words, by_file))
    assert first.kind is second.kind is Kind.WORKER
    assert first.addresses == second.addresses == (ADDRESS,)
