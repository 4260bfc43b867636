"""Effects of faults on real processes: an etcd under strace, packets through nftables, a stopped process."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clients.waiting import wait_until
from sandbox.lab.errors import LabError
from tests.bench import effects, injections
from tests.bench.effects import Fsyncs, NoEffectError
from tests.ports import free_port
from tests.programs import PROGRAMS, needs

DELAY_MS = 100
STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@dataclass(frozen=True)
class Etcd:
    process: subprocess.Popen[bytes]
    client: str
    metrics: str

    def text(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.metrics}/{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def fsyncs(self) -> Fsyncs:
        return Fsyncs.of(self.text("metrics"))

    def missing(self) -> str:
        try:
            return "" if "true" in self.text("health") else "it is not healthy"
        except (urllib.error.URLError, ConnectionError) as error:
            return str(error)

    def put(self) -> None:
        subprocess.run([PROGRAMS["etcdctl"], f"--endpoints={self.client}", "put", "key", "value"], check=True)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    client, peer, metrics = (f"http://127.0.0.1:{free_port()}" for _ in range(3))
    flags = {
        "data-dir": tmp_path / "data",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "listen-metrics-urls": metrics,
    }
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [PROGRAMS["etcd"], *(f"--{name}={value}" for name, value in flags.items())], stderr=log
        ) as process,
    ):
        try:
            member = Etcd(process, client, metrics)
            wait_until(member.missing, 60, lambda _: None, every_s=0.1)
            yield member
        finally:
            process.kill()


@STRACE
@needs(("etcd", "etcdctl"))
def test_a_slow_disk_shows_in_etcds_histogram_and_a_normal_one_does_not(etcd: Etcd) -> None:
    def written(before: Fsyncs) -> str:
        for _ in range(3):
            etcd.put()
        return effects.not_slower(before, etcd.fsyncs(), DELAY_MS / 1000)

    assert f"expected {DELAY_MS / 1000:g} s more each" in written(etcd.fsyncs())
    with injections.slowed(etcd.process.pid, DELAY_MS):
        assert written(etcd.fsyncs()) == ""
    assert etcd.process.poll() is None
    assert written(etcd.fsyncs()) != ""


@STRACE
def test_slowing_a_missing_process_fails() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(LabError, match="strace exited with 1.*No such process"), injections.slowed(ended.pid, 1):
        raise AssertionError("the fault started")


@STRACE
def test_losing_the_tracer_during_the_fault_fails() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            with pytest.raises(LabError, match="strace exited"), injections.slowed(process.pid, 1):
                tracer = int(Path(f"/proc/{process.pid}/status").read_text().partition("TracerPid:\t")[2].split()[0])
                subprocess.run(["kill", str(tracer)], check=True)
                wait_until(lambda: "" if _is_over(tracer) else "it traces", 10, lambda _: None, every_s=0.05)
        finally:
            process.kill()


def _is_over(pid: int) -> bool:
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_a_process_stopped_by_a_signal_is_detected() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            status = Path(f"/proc/{process.pid}/status")
            wait_until(lambda: "" if "S (sleeping)" in status.read_text() else "it starts", 10, lambda _: None)
            assert effects.not_paused(status.read_text()) == "State in /proc is S (sleeping), not T"
            process.send_signal(signal.SIGSTOP)
            effects.until_seen("SIGSTOP", lambda: effects.not_paused(status.read_text()), 10)
        finally:
            process.kill()


Cut = Callable[[str, int], str]
# sendto(2) fails for packets that are dropped on output.
SENDS = """
import contextlib, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(100):
        with contextlib.suppress(PermissionError):
            sender.sendto(b"x", ("127.0.0.1", 9))
"""


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    """nftables' counters of a separate network namespace in which a few packets went to 127.0.0.1."""
    rules = tmp_path / "rules"

    def counted(address: str, share: int) -> str:
        rules.write_text(injections.cut_rules([address], share))
        script = (
            f"ip link set lo up; nft -f {rules}; {sys.executable} -c '{SENDS}'; nft list table inet menagerie_fault"
        )
        done = subprocess.run(
            ["unshare", "--map-root-user", "--net", "sh", "-c", script], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no network namespaces with nftables here: {done.stderr.strip()}")
        return done.stdout

    return counted


def test_dropped_packets_are_counted(cut: Cut) -> None:
    listing = cut("127.0.0.1", 50)
    assert effects.not_cut(listing, 50) == ""


def test_a_cut_that_no_packet_met_does_not_count(cut: Cut) -> None:
    expected = "nftables counts, in and out: 0 of 0 packets dropped; 0 of 0 packets dropped"
    assert effects.not_cut(cut("192.0.2.1", 100), 100) == expected


@pytest.mark.parametrize(
    ("share", "counts", "well"),
    [
        (100, (5, 5, 7, 7), True),
        (100, (0, 0, 7, 7), False),
        (50, (5, 2, 7, 4), True),
        (50, (5, 5, 7, 7), False),
        (50, (5, 0, 7, 4), False),
    ],
)
def test_both_directions_must_lose_packets_and_a_partial_cut_must_let_some_pass(
    share: int, counts: tuple[int, ...], well: bool
) -> None:
    listing = "".join(f"ip saddr 10.0.0.1 counter packets {count} bytes 60\n" for count in counts)
    assert (effects.not_cut(listing, share) == "") is well


FULL = """\
{"level":"error","msg":"failed to preallocate space when creating a new WAL","error":"no space left on device"}
{"level":"info","msg":"serving client traffic"}
"""
ENDED = '{"level":"fatal","msg":"failed to commit tx","error":"write /x/member/snap/db: no space left on device"}\n'


def test_a_member_that_continues_in_its_allocated_space_has_no_full_disk() -> None:
    assert effects.not_full(FULL + ENDED) == ""
    assert "serving client traffic" in effects.not_full(FULL)
    assert effects.not_full("").endswith("nothing")


class Host:
    """Fake answers of a host's commands, by program, or by systemctl's subcommand."""

    def __init__(self, **answers: str | list[str]) -> None:
        self.answers, self.done = answers, list[tuple[str, ...]]()

    def do(self, _: str, *argv: str) -> str:
        self.done.append(argv)
        key = argv[1] if argv[0] == "systemctl" else argv[0]
        answer = self.answers.get(key, "")
        return answer if isinstance(answer, str) else answer.pop(0) if len(answer) > 1 else answer[0]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Host]]:
    def made(**answers: str | list[str]) -> Host:
        host_ = Host(**answers)
        monkeypatch.setattr(injections, "do", host_.do)
        monkeypatch.setattr(injections, "_later", lambda *_: None)
        monkeypatch.setattr(injections, "_forget", lambda *_: None)
        return host_

    monkeypatch.setattr(injections, "until_seen", lambda fault, missing: effects.until_seen(fault, missing, 0.0))
    yield made


def test_a_process_that_survives_sigkill_is_no_fault(host: Callable[..., Host]) -> None:
    host(show="42")
    with pytest.raises(NoEffectError, match=r"SIGKILL of etcd on h had no effect.*process 42"):
        injections.killed("h", "etcd").__enter__()
    host(show=["42", "0"])
    with injections.killed("h", "etcd"):
        pass


@pytest.mark.parametrize("fault", [injections.killed, injections.paused])
def test_a_unit_that_does_not_run_can_not_be_hit(host: Callable[..., Host], fault: Callable[..., object]) -> None:
    host(show="0")
    with pytest.raises(LabError, match="etcd does not run on h"):
        fault("h", "etcd").__enter__()  # type: ignore[attr-defined]


def test_a_process_that_keeps_running_is_not_paused_but_still_gets_sigcont(host: Callable[..., Host]) -> None:
    commands = host(show="42", cat="State:\tS (sleeping)\n")
    with pytest.raises(NoEffectError, match="State in /proc is S"):
        injections.paused("h", "etcd").__enter__()
    assert commands.done[-1] == ("systemctl", "kill", "--signal=SIGCONT", "etcd")


def test_a_unit_that_keeps_running_is_not_stopped(host: Callable[..., Host]) -> None:
    commands = host(show="42")
    with pytest.raises(NoEffectError, match="it still runs on a, it still runs on b"):
        injections.stopped(["a", "b"], "etcd").__enter__()
    assert commands.done[-2:] == [("systemctl", "start", "--no-block", "etcd")] * 2
