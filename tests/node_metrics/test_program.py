"""menagerie-node-metrics on made-up hosts: what it writes, and what it does when something does not answer."""

from __future__ import annotations

import http.server
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from menagerie_node_metrics import METRICS, Sample, Unanswered, __main__, devices, host, page
from prometheus_client.parser import text_string_to_metric_families

from components.workers import host_config
from network.addresses import plan
from tests.node_metrics.test_gpus import recorded

ROLE = Path(__file__).parents[2] / "roles" / "node_metrics" / "files"
FOLDER = "/var/lib/prometheus/node-exporter"
SYSTEMCTL = "Id=containerd.service\nActiveState=active\nNRestarts=0\n\nId=flanneld.service\nActiveState=activating\nNRestarts=41\n"
GPU = "sys/bus/pci/devices/0000:61:00.0"


class Machine:
    """A host in a folder, with programs that answer with a text, or not at all."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.answers, self.started, self.acts = root, {"systemctl": SYSTEMCTL}, 0, list[str]()
        monkeypatch.setattr(host.Host, "run", lambda _, words: self.run(words))
        self.port = 1

    def run(self, words: list[str]) -> str:
        if words[0] not in self.answers:
            raise Unanswered(f"{words[0]} is missing")
        if words[-1] == host.EXPORTER:
            self.acts += [" ".join(words)] if words[1] != "show" else []
            return f"{self.started}\n"
        return self.answers[words[0]]

    def put(self, path: str, text: str) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def gpu(self) -> None:
        self.put(f"{GPU}/vendor", "0x10de\n")
        self.put(f"{GPU}/class", "0x030200\n")

    def file(self, command: str) -> Path:
        return self.root / FOLDER.lstrip("/") / f"menagerie_{command}.prom"

    def written(self, command: str, *units: str) -> dict[str, float]:
        """Run a command for its timer. Return what its file has: name and labels -> value."""
        words = [command, f"--folder={FOLDER}", f"--agent-port={self.port}", *units]
        assert __main__.main(words, str(self.root)) == 0
        path = self.file(command)
        return values(path.read_text()) if path.exists() else {}


def values(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def agent(machine: Machine) -> Iterator[None]:
    """Serve metrics as konnectivity's agent does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"# TYPE x gauge\nkonnectivity_network_proxy_agent_open_server_connections 3\n")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    machine.port = server.server_address[1]
    yield
    server.shutdown()
    server.server_close()


def test_a_host_without_gpus_has_its_units_its_agent_and_nothing_of_gpus(machine: Machine, agent: None) -> None:
    machine.put("/run/menagerie-preflight/passed", "True\n")
    read = machine.written("host", "containerd.service", "flanneld.service")
    assert read.pop("menagerie_preflight_timestamp_seconds") == pytest.approx(time.time(), abs=60)
    assert read == {
        "menagerie_reader_failed systemd": 0,
        "menagerie_reader_failed exporter": 0,
        "menagerie_unit_active containerd.service": 1,
        "menagerie_unit_active flanneld.service": 0,
        "menagerie_unit_restarts_total containerd.service": 0,
        "menagerie_unit_restarts_total flanneld.service": 41,
        "menagerie_preflight_passed": 1,
        "menagerie_reboot_required": 0,
        "menagerie_agent_tunnels": 3,
        "menagerie_reader_stuck": 0,
    }
    assert machine.written("gpus") == {}
    assert stat.S_IMODE(machine.file("host").stat().st_mode) == 0o644
    assert os.listdir(machine.file("host").parent) == ["menagerie_host.prom"]


@pytest.mark.parametrize("path", ["/run/reboot-required", "/run/menagerie/reboot-required.d/links"])
def test_a_reason_to_reboot_shows(machine: Machine, path: str) -> None:
    assert machine.written("host")["menagerie_reboot_required"] == 0
    machine.put(path, "firmware\n")
    assert machine.written("host")["menagerie_reboot_required"] == 1


@pytest.mark.parametrize(("result", "passed"), [("True", 1), ("False", 0)])
def test_the_result_of_the_hosts_own_checks_shows_with_its_time(machine: Machine, result: str, passed: int) -> None:
    os.utime(machine.put("/run/menagerie-preflight/passed", result), (1_760_000_000, 1_760_000_000))
    read = machine.written("host")
    assert (read["menagerie_preflight_passed"], read["menagerie_preflight_timestamp_seconds"]) == (
        passed,
        1_760_000_000,
    )


def test_without_systemd_and_without_an_agent_the_rest_is_written(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    del machine.answers["systemctl"]
    read = machine.written("host", "containerd.service")
    assert (read["menagerie_reader_failed systemd"], read["menagerie_agent_tunnels"]) == (1, 0)
    assert "menagerie_unit_active containerd.service" not in read
    assert capsys.readouterr().err == 2 * "<4>systemctl is missing\n"
    machine.written("host", "containerd.service")
    assert capsys.readouterr().err == ""  # said once


def test_gpus_have_their_values_and_their_pods(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.gpu()
    machine.answers["nvidia-smi"] = recorded("rtx-pro-6000")
    uuid = "GPU-12345678-aaaa-bbbb-cccc-0123456789ab"
    mine, other = [("team-a", "train-0")], [("team-b", "on-an-instance-of-mig")]
    monkeypatch.setattr(devices, "pods", lambda _: {uuid: mine, "MIG-1": other})
    read = machine.written("gpus")
    assert (read["menagerie_gpus bus"], read["menagerie_gpus driver"]) == (1, 1)
    assert read["menagerie_gpu_power_watts 0"] == 3.97
    assert {name for name in read if name.startswith("menagerie_gpu_pod")} == {"menagerie_gpu_pod 0 team-a train-0"}


def test_a_gpu_without_a_driver_shows_and_a_kubelet_that_does_not_answer_too(machine: Machine) -> None:
    machine.gpu()
    assert machine.written("gpus") == {
        "menagerie_gpus bus": 1,
        "menagerie_gpus driver": 0,
        "menagerie_reader_failed nvidia-smi": 1,
        "menagerie_reader_failed kubelet": 1,
    }


def test_only_nvidias_display_controllers_count(machine: Machine) -> None:
    machine.gpu()
    for name, vendor, kind in (("1", "0x10de", "0x040300"), ("2", "0x15b3", "0x020700"), ("3", "0x1a03", "0x030000")):
        machine.put(f"sys/bus/pci/devices/{name}/vendor", vendor)
        machine.put(f"sys/bus/pci/devices/{name}/class", kind)
    assert host.Host(str(machine.root)).pci_gpus() == 1


RESTART = f"systemctl try-restart {host.EXPORTER}"


def test_the_exporter_starts_again_once_when_a_credential_is_younger_than_its_start(machine: Machine) -> None:
    """The kubelet writes another file, and replaces the link to it by renaming."""
    for path in host.CREDENTIALS:
        old = machine.put(path, "")
        os.utime(old, (time.time() - 3600, time.time() - 3600))
    machine.written("host")
    assert machine.acts == []  # it has not started: its path unit waits for the certificate
    machine.started = int((time.monotonic() - 60) * 1e6)
    machine.written("host")
    assert machine.acts == []
    link = machine.root / host.CREDENTIALS[0].lstrip("/")
    new = machine.put("/var/lib/kubelet/pki/kubelet-server-2.pem", "")
    os.utime(new, (time.time() - 3600, time.time() - 3600))
    link.unlink()
    machine.written("host")  # while a renewal goes on there is no certificate
    assert machine.acts == []
    link.symlink_to(new)
    machine.written("host")
    assert machine.acts == [RESTART]
    machine.started = int(time.monotonic() * 1e6)
    machine.written("host")
    assert machine.acts == [RESTART]
    machine.put(host.CREDENTIALS[1], "another authority")
    machine.written("host")
    assert machine.acts == [RESTART] * 2


def test_files_from_the_future_do_not_restart_the_exporter_for_ever(machine: Machine) -> None:
    machine.started = int((time.monotonic() - 60) * 1e6)
    os.utime(machine.put(host.CREDENTIALS[1], ""), (time.time() + 3600, time.time() + 3600))
    machine.written("host")
    assert machine.acts == []


def test_metrics_of_gpus_that_nobody_has_read_for_minutes_are_removed(machine: Machine) -> None:
    machine.gpu()
    machine.written("gpus")
    assert machine.written("host")["menagerie_reader_stuck"] == 0
    long_ago = time.time() - __main__.STALE_S - 1
    os.utime(machine.file("gpus"), (long_ago, long_ago))
    for _ in range(2):
        assert machine.written("host")["menagerie_reader_stuck"] == 1
        assert not machine.file("gpus").exists()
    machine.written("gpus")
    assert machine.written("host")["menagerie_reader_stuck"] == 0


def test_a_host_that_lost_all_its_gpus_keeps_no_file_of_them(machine: Machine) -> None:
    machine.gpu()
    machine.written("gpus")
    (machine.root / GPU / "vendor").unlink()
    assert machine.written("gpus") == {}
    assert not machine.file("gpus").exists()


def test_without_a_folder_it_prints_and_writes_nothing(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["host"], str(machine.root)) == 0
    assert "menagerie_reboot_required 0\n" in capsys.readouterr().out
    assert os.listdir(machine.root) == []


def test_a_page_has_each_metric_once_with_its_meaning_and_escapes_what_it_must() -> None:
    odd = 'a"b\\c\nd'
    text = page(
        [Sample("gpu_pod", 1, (("gpu", "0"), ("pod", odd))), Sample("gpus", 2), Sample("gpu_pod", 1, (("gpu", "1"),))]
    )
    families = list(text_string_to_metric_families(text))
    assert [(family.name, len(family.samples)) for family in families] == [
        ("menagerie_gpu_pod", 2),
        ("menagerie_gpus", 1),
    ]
    assert families[0].samples[0].labels["pod"] == odd
    assert families[0].documentation == METRICS["gpu_pod"][1]


def test_a_large_counter_keeps_its_digits() -> None:
    assert page([Sample("gpu_memory_bytes", 196_608 << 20)]).endswith("menagerie_gpu_memory_bytes 206158430208\n")


def test_without_comments_as_workers_in_the_region_get_it_the_program_does_the_same(
    hybrid, source, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    library = "/usr/local/lib/menagerie-node-metrics/"
    for file in host_config(hybrid, "cpu", plan(hybrid), source).files:
        if file.path.startswith(library):
            place = tmp_path / file.path.removeprefix(library)
            place.parent.mkdir(exist_ok=True)
            place.write_text(file.text)
    printed = [
        subprocess.run(
            [sys.executable, "-sB", "-m", "menagerie_node_metrics", "host"],
            env={"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
        ).stdout
        for folder in (tmp_path, ROLE)
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert "menagerie_agent_tunnels 0\n" in printed[0]
