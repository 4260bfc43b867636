"""audit-log: every line of the API server's audit log reaches the bucket once, whatever happens to the host."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.control_plane.host import audit_log
from components.control_plane.host.audit_log import Shipper, segments
from components.control_plane.host.bucket import BucketError


class KilledError(BaseException):
    """Stands for the end of a process by SIGKILL."""


class Bucket:
    """Accepts each name once. down: does not answer. killed: kills the shipper ``before`` or ``after`` the next object is stored."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.down = False
        self.killed = ""

    def put(self, name: str, data: bytes) -> bool:
        if self.down:
            raise BucketError("no answer")
        killed, self.killed = self.killed, ""
        if killed == "before":
            raise KilledError
        is_new = name not in self.objects
        self.objects.setdefault(name, data)
        if killed == "after":
            raise KilledError
        return is_new

    def lines(self) -> list[str]:
        """Return the lines for a reader, who sorts the names."""
        return gzip.decompress(b"".join(self.objects[name] for name in sorted(self.objects))).decode().splitlines()


class Host:
    """An API-server host with its log, which kube-apiserver (lumberjack) writes, rotates and compresses."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "audit" / "audit.log"
        self.log.parent.mkdir()
        self.state = folder / "state.json"
        self.bucket = Bucket()
        self.clock = 1_790_000_000.0
        self.written: list[str] = []
        self.rotations = 0
        self.boot()

    def boot(self) -> None:
        self.shipper = Shipper(
            "lab/api-1", self.bucket.put, self.log, self.state, "c0ffee00-aaaa", now=lambda: self.clock
        )

    def write(self, count: int = 1, partial: bool = False) -> None:
        with self.log.open("a") as file:
            for _ in range(count):
                self.written.append(json.dumps({"auditID": f"{len(self.written):06}", "verb": "get"}))
                file.write(self.written[-1] + "\n")
            if partial:
                file.write('{"auditID":')

    def rotate(self) -> Path:
        self.rotations += 1
        name = self.log.with_name(f"audit-2026-11-23T08-00-{self.rotations:02}.000.log")
        if self.log.exists():
            self.log.rename(name)
        self.log.touch()
        return name

    def pack(self, *, whole: bool = True) -> None:
        """Compress the oldest plain file. whole: if false, the result is half written and the plain file still exists."""
        for path in sorted(self.log.parent.glob("audit-*.log"))[:1]:
            packed = gzip.compress(path.read_bytes())
            path.with_name(f"{path.name}.gz").write_bytes(packed if whole else packed[: len(packed) // 2])
            if whole:
                path.unlink()

    def step(self) -> None:
        try:
            self.shipper.step()
        except BucketError:
            pass
        except KilledError:
            self.boot()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture(autouse=True)
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_log, "CHUNK", 64)
        patch.setattr(audit_log.os, "fsync", lambda _: None)
        yield


EVENTS = ("write", "several", "rotate", "pack", "half-pack", "step", "kill-before", "kill-after", "down", "up", "boot")


@given(events=st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=80)
def test_every_line_arrives_once_and_in_order_whatever_happens(events: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        for event in events:
            if event in ("write", "several"):
                host.write(1 if event == "write" else 7)
            elif event == "rotate":
                host.rotate()
            elif event in ("pack", "half-pack"):
                host.pack(whole=event == "pack")
            elif event in ("down", "up"):
                host.bucket.down = event == "down"
            elif event == "boot":
                host.boot()
            else:
                host.bucket.killed = event.removeprefix("kill-") if event != "step" else ""
                host.step()
        host.bucket.down, host.bucket.killed = False, ""
        for _ in range(3):
            host.step()
        assert host.bucket.lines() == host.written


def test_a_line_is_never_split(host: Host) -> None:
    host.write(3, partial=True)
    host.step()
    assert host.bucket.lines() == host.written
    with host.log.open("a") as file:
        file.write(' "whole"}\n')
    host.step()
    assert host.bucket.lines()[3:] == ['{"auditID": "whole"}']


def test_the_lines_of_a_lost_host_are_in_the_bucket_and_root_on_it_can_not_remove_them(host: Host) -> None:
    """Root on the host removes, truncates and rewrites the log."""
    host.write(20)
    host.step()
    shipped = dict(host.bucket.objects)
    host.log.unlink()
    host.state.unlink()
    host.log.write_text('{"auditID": "000000", "verb": "forged"}\n')
    host.clock += 1
    host.boot()
    host.step()
    assert host.bucket.lines()[:20] == host.written
    assert {name: host.bucket.objects[name] for name in shipped} == shipped


def test_a_bucket_that_is_down_longer_than_files_are_kept_leaves_a_gap_that_is_reported_once(host: Host) -> None:
    host.write(5)
    host.step()
    host.write(5)
    host.bucket.down = True
    host.step()
    first = host.rotate()
    host.write(2)
    host.step()
    first.unlink()
    for _ in range(3):
        host.step()
    host.bucket.down = False
    for _ in range(3):
        host.step()
    (gap,) = [line for line in host.bucket.lines() if "Gap" in line]
    assert json.loads(gap)["lostBytes"] == sum(len(line) + 1 for line in host.written[5:10])
    assert [name for name in host.bucket.objects if "-gap." in name]
    assert [line for line in host.bucket.lines() if "Gap" not in line] == [*host.written[:5], *host.written[10:]]


def test_a_killed_shipper_reports_a_gap_once(host: Host) -> None:
    host.bucket.down = True
    host.write(3)
    host.step()
    host.log.unlink()
    host.bucket.down, host.bucket.killed = False, "after"
    for _ in range(4):
        host.step()
    assert len([line for line in host.bucket.lines() if "Gap" in line]) == 1


def test_names_sort_by_sequence_even_if_the_clock_jumps(host: Host) -> None:
    for jump in (0, -86_400, 172_800, -5):
        host.clock += jump
        host.write(2)
        host.step()
    assert host.bucket.lines() == host.written
    assert all(name.startswith("lab/api-1/20260921T") for name in host.bucket.objects)


def test_a_full_disk_does_not_stop_shipping(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audit_log.os, "fsync", full)
    for _ in range(3):
        host.write(2)
        host.step()
    assert host.bucket.lines() == host.written


def test_a_damaged_file_does_not_block_others(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.write(50)
    host.rotate()
    host.pack()
    (packed,) = host.log.parent.glob("*.gz")
    packed.write_bytes(packed.read_bytes()[:-30])
    host.write(2)
    host.step()
    host.step()
    assert host.bucket.lines()[-2:] == host.written[-2:]
    assert "damaged" in capsys.readouterr().out


def test_an_unreadable_state_loses_nothing(host: Host) -> None:
    host.write(3)
    host.step()
    host.state.write_text('{"boot": ')
    host.boot()
    host.write(1)
    host.step()
    assert set(host.bucket.lines()) == set(host.written)


def test_a_quiet_api_server_is_distinguished_from_one_that_ships_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.write(1)
    host.step()
    host.step()
    assert len(host.bucket.objects) == 1
    monkeypatch.setattr(audit_log, "QUIET_S", 0.0)
    host.step()
    assert len(host.bucket.objects) == 2
    assert host.bucket.lines() == host.written


def test_a_machine_with_a_hosts_old_name_writes_other_objects(host: Host, tmp_path: Path) -> None:
    host.write(2)
    host.step()
    (folder := tmp_path / "new").mkdir()
    other = Host(folder)
    other.bucket = host.bucket
    other.shipper = Shipper("lab/api-1", other.bucket.put, other.log, other.state, "decafbad-1", lambda: other.clock)
    other.write(2)
    other.step()
    assert len({name.split("/")[2] for name in host.bucket.objects}) == 2
    assert sorted(host.bucket.lines()) == sorted(host.written * 2)


def test_a_file_during_compression_counts_once(host: Host) -> None:
    host.write(9)
    host.rotate()
    host.pack(whole=False)
    assert [segment.path.suffix for segment in segments(host.log)] == [".log"]
