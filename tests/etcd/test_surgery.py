"""The agent's actions on folders, interrupted at every change on disk. tests/operations runs them on real etcds."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from menagerie_etcd import surgery as surgery_module
from menagerie_etcd import system
from menagerie_etcd.agent_settings import Member
from menagerie_etcd.facts import last_words, not_after, quantile, samples
from menagerie_etcd.snapshots import Programs, refuse_damage
from menagerie_etcd.surgery import Surgery
from menagerie_etcd.system import Failure, Systemd

from tests.etcd.real import authority, pems

TOKEN = {"token": "test-1"}


class Units:
    """Units whose start only changes the data folder."""

    def __init__(self, data: Path) -> None:
        self.data, self.active = data, True
        self.words: list[str] = []

    def is_active(self, unit: str) -> bool:
        return self.active

    def start(self, unit: str) -> None:
        self.active = True
        (self.data / "member/wal").mkdir(parents=True, exist_ok=True)
        (self.data / "member/wal/0.wal").touch()

    def stop(self, unit: str) -> None:
        self.active = False

    def run(self, unit: str, timeout_s: float) -> None:
        self.words.append(f"run {unit}")

    def said(self, unit: str) -> list[str]:
        return []

    def give(self, unit: str, words: str) -> None:
        self.words.append(words)


@pytest.fixture
def surgery(tmp_path: Path) -> Surgery:
    """Return the surgery of a member whose folders say what they are, with a prepared one next to the data."""
    member = Member("main", "m", "etcd-main.service", "backup.service", tmp_path, "https://m:2380", 1, tmp_path)
    units = Units(tmp_path)
    surgery = Surgery(member, Programs(tmp_path, getpass.getuser()), units, lambda role: pytest.fail(role))
    (tmp_path / "member/wal").mkdir(parents=True)
    (tmp_path / "member/old").touch()
    (tmp_path / "member/wal/0.wal").touch()
    (tmp_path / ".menagerie/test-1/data/member").mkdir(parents=True)
    (tmp_path / ".menagerie/test-1/data/member/new").touch()
    return surgery


class Killed(BaseException):
    pass


def until_done(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> tuple[Any, int]:
    """Run an action that is killed before its first change on disk, then before its second, and so on. Return its result and the kills."""
    changes: list[int] = []

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            changes[0] -= 1
            if changes[0] < 0:
                raise Killed
            return real(*args, **kwargs)

        return change

    for name in ("rename", "mkdir", "write_text", "unlink"):
        monkeypatch.setattr(Path, name, counting(getattr(Path, name)))
    for kills in range(20):
        changes[:] = [kills]
        try:
            return act(), kills
        except Killed:
            continue
    raise AssertionError("it never ends")


def test_a_swap_that_is_killed_anywhere_is_completed_by_the_next_one(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    surgery.stop(TOKEN)
    answer, kills = until_done(monkeypatch, lambda: surgery.swap(TOKEN))
    assert kills >= 1
    data = surgery.member.data_dir
    assert (data / "member/new").exists()
    assert (Path(answer["kept"]) / "old").exists()
    assert surgery.swap(TOKEN) == answer
    assert (data / "member/new").exists()


def test_a_join_that_is_killed_anywhere_sets_the_old_data_aside_once(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {**TOKEN, "initial_cluster": "m=https://m:2380"}
    answer, kills = until_done(monkeypatch, lambda: surgery.join(body))
    assert kills >= 3
    assert (Path(answer["kept"]) / "old").exists()
    assert not (surgery.member.data_dir / "member/old").exists()
    assert surgery.held() == ""
    units: Any = surgery._units
    assert "--initial-cluster-state=existing --initial-cluster=m=https://m:2380" in units.words
    assert units.words[-1] == ""


def test_a_member_that_does_not_join_is_stopped_and_held(surgery: Surgery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surgery_module, "JOIN_S", 0)
    monkeypatch.setattr(Units, "start", lambda self, unit: setattr(self, "active", True))
    with pytest.raises(Failure, match=r"m has not joined within 0 s: journalctl -u etcd-main\.service"):
        surgery.join({**TOKEN, "initial_cluster": "m=https://m:2380"})
    assert surgery.held() == "test-1"
    assert not surgery._units.is_active("etcd-main.service")


def test_nothing_is_swapped_while_the_member_runs_or_if_nothing_is_prepared(surgery: Surgery) -> None:
    with pytest.raises(Failure, match="is running; stop it first"):
        surgery.swap(TOKEN)
    surgery.stop({"token": "other"})
    with pytest.raises(Failure, match="nothing is prepared with the token other"):
        surgery.swap({"token": "other"})
    assert (surgery.member.data_dir / "member/old").exists()


def test_data_set_aside_is_removed_only_on_request(surgery: Surgery) -> None:
    surgery.stop(TOKEN)
    surgery.swap(TOKEN)
    assert set(surgery.ages_aside()) == {"before-test-1", "test-1"}
    assert all(0 <= age < 60 for age in surgery.ages_aside().values())
    assert surgery.forget({"older_than_s": 3600}) == {"forgotten": []}
    assert surgery.forget({"token": "another"}) == {"forgotten": []}
    assert sorted(surgery.forget(TOKEN)["forgotten"]) == ["before-test-1", "test-1"]
    assert (surgery.member.data_dir / "member/new").exists()


def test_a_backup_runs_the_backup_unit(surgery: Surgery) -> None:
    surgery.backup({})
    assert surgery._units.words == ["run backup.service"]  # type: ignore[attr-defined]


def test_a_file_that_etcdctl_did_not_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"x" * 1024)
    with pytest.raises(Failure, match=r"truncated, or was not made by `snapshot save`: 1024 bytes"):
        refuse_damage(path)
    path.write_bytes(b"x" * 1056)
    with pytest.raises(Failure, match="its SHA-256 is .*, but it records 7878"):
        refuse_damage(path)


def test_flags_of_a_joining_member_are_a_drop_in_that_systemd_reads_and_a_reboot_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(system, "DROP_INS", tmp_path)
    monkeypatch.setattr(Systemd, "_ask", lambda self, *words, **how: calls.append(words))
    path = tmp_path / "etcd-main.service.d/menagerie-join.conf"
    Systemd().give("etcd-main.service", "--a=b --c=d%20")
    assert path.read_text() == '[Service]\nEnvironment="MENAGERIE_JOIN=--a=b --c=d%%20"\n'
    Systemd().give("etcd-main.service", "")
    assert not path.exists()
    Systemd().give("etcd-main.service", "")
    assert calls == [("daemon-reload",), ("daemon-reload",)]


def test_systemctl_is_called_and_its_message_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text(
        '#!/bin/sh\ncase "$1" in is-active) echo activating; exit 3;; stop) echo no such unit; exit 5;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Systemd().is_active("etcd-main.service")
    with pytest.raises(Failure, match=r"systemctl stop etcd-main\.service: no such unit"):
        Systemd().stop("etcd-main.service")


def test_the_last_message_of_an_etcd_is_its_last_error() -> None:
    lines = [
        '{"level":"error","msg":"first"}',
        '{"level":"fatal","msg":"failed to start","error":"mvcc: hash mismatch"}',
        '{"level":"info","msg":"closed"}',
        "\tgo.etcd.io/etcd/server/v3/main.go:32",
    ]
    assert last_words(lines) == "failed to start: mvcc: hash mismatch"
    assert last_words([*lines, "panic: freepages: failed to get all reachable pages", "goroutine 1:"]).startswith(
        "panic: freep"
    )
    removed = "the member has been permanently removed from the cluster"
    assert last_words([f'{{"level":"warn","msg":"server error","error":"{removed}"}}', *lines]) == removed
    assert last_words(["Starting etcd", "[]", '{"level":"info"}']) == ""


def test_a_quantile_is_interpolated_between_two_buckets() -> None:
    text = 'x_bucket{le="0.001"} 50\nx_bucket{le="0.002"} 100\nx_bucket{le="+Inf"} 100\nx_count 100\n'
    assert quantile(samples(text), "x", 0.75) == pytest.approx(0.0015)
    assert quantile(samples(text), "y", 0.5) is None
    assert quantile(samples('x_bucket{le="1"} 0\nx_bucket{le="+Inf"} 4\n'), "x", 0.99) == 1.0


def test_the_expiry_of_a_certificate_is_read_from_its_der() -> None:
    signer = authority("main")
    assert not_after(signer.pem) == int(signer.certificate.not_valid_after_utc.timestamp())
    assert not_after(pems("m", signer, ("server",))[0] + signer.pem) > 0
    with pytest.raises(ValueError, match="no certificate"):
        not_after("nothing")
